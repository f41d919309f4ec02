"""The process that reads an untrusted file: `python -m books.files.sandbox.reader`, with a socket as standard input.

It has no models and no settings of the library. If it exceeds its limits, it dies.
"""

import json
import resource
from socket import socket
from typing import Any

from django.apps import apps
from django.conf import settings

from books.files.sandbox import messages

MAX_OPEN_FILES = 64


def main() -> None:
    connection = socket(fileno=0)
    _kind, content = messages.receive(connection)
    job = json.loads(content)
    configure_django(job)
    # Some formats translate texts when they are imported.
    from books.files.sandbox.tasks import serve

    messages.send(connection, messages.READY)
    limit_resources(job["cpu_seconds"], job["memory_bytes"])
    serve(connection, job)


def configure_django(job: dict[str, Any]) -> None:
    settings.configure(LANGUAGE_CODE=job["language"], LOCALE_PATHS=job["locale_paths"])
    apps.populate(())


def limit_resources(cpu_seconds: int, memory_bytes: int) -> None:
    """The process is killed at the hard limit of its processor time if it survives the soft limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_OPEN_FILES, MAX_OPEN_FILES))


if __name__ == "__main__":
    main()
