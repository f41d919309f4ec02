"""The command. Its argument is a job in JSON (`books.files.reader.client`). If it exceeds its limits, it dies."""

import json
import resource
import signal
import sys
from typing import Any

from django.apps import apps
from django.conf import settings

MAX_OPEN_FILES = 64


def main() -> None:
    # Nobody reads the output if the client is gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    job: dict[str, Any] = json.loads(sys.argv[1])
    settings.configure(LANGUAGE_CODE=job["language"], LOCALE_PATHS=job["locale_paths"])
    apps.populate(())
    # Some formats translate texts when they are imported.
    from books.files.reader.tasks import write_results

    limit_resources(job["cpu_seconds"], job["memory_bytes"])
    with open(0, "rb") as stream, open(1, "wb") as output:
        write_results(job, stream, output)


def limit_resources(cpu_seconds: int, memory_bytes: int) -> None:
    """The process is killed at the hard limit of its processor time if it survives the soft limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (MAX_OPEN_FILES, MAX_OPEN_FILES))


if __name__ == "__main__":
    main()
