"""Replaces this process by the web server."""

import json
import os
import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Serves the library on HOST and PORT with WEB_CONCURRENCY processes, until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        require_free_port(settings.HOST, settings.PORT)
        address = settings.PUBLIC_URL
        self.stdout.write(
            f"The library   {address}/api/books\n"
            f"Documentation {address}/docs\n"
            f"Admin         {address}/admin/ (the first librarian: .venv/bin/python manage.py createsuperuser)\n"
            "Ctrl-C stops it."
        )
        self.stdout.flush()
        os.environ["PYTHONPATH"] = os.pathsep.join([str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")])
        command = build_granian_command(settings.HOST, settings.PORT, settings.WEB_CONCURRENCY, settings.WEB_THREADS)
        os.execv(sys.executable, [*command, "--log-config", open_pipe(json.dumps(settings.LOGGING))])


def require_free_port(host: str, port: int) -> None:
    """Raises CommandError if the port is in use: two servers on one port would share the requests."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise CommandError(f"HOST {host}, PORT {port}: {os.strerror(error.errno or 0)}.") from error


def open_pipe(text: str) -> str:
    """Returns a path from which the server can read the text once; no file stays behind."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    os.set_inheritable(read_end, True)  # noqa: FBT003  # os defines it so
    return f"/dev/fd/{read_end}"


def build_granian_command(host: str, port: int, workers: int, threads: int) -> list[str]:
    """Returns the server's command line. Threads let the commits of writers overlap; dead workers are replaced."""
    options = {
        "--interface": "wsgi",
        "--host": host,
        "--port": port,
        "--workers": workers,
        "--blocking-threads": threads,
        "--log-level": "error",
        # Seconds that running requests get at a stop: a body that never arrives must not block it.
        "--workers-kill-timeout": 10,
    }
    arguments = [str(word) for option in options.items() for word in option]
    return [
        sys.executable,
        "-m",
        "granian",
        *arguments,
        "--no-ws",
        "--respawn-failed-workers",
        "library_site.wsgi:application",
    ]
