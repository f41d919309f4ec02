"""Starts the web server, alone or beside other commands."""

import errno
import os
import socket
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from library_site.management.checked_command import CheckedCommand
from library_site.monitoring.metrics_files import prepare_directory
from library_site.server import build_server, prepare_workers


class Command(CheckedCommand):
    help = "Serves the library on HOST and PORT with WEB_CONCURRENCY processes, until Ctrl-C."
    # They run after the test of the port, so that a port in use is all that is reported.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--with",
            metavar="COMMAND",
            action="append",
            default=[],
            help="run this command of manage.py as long as the server; can be given several times",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_free_port("", settings.HOST, settings.PORT)
        if settings.HEALTH_PORT:
            require_free_port("HEALTH_", settings.HEALTH_HOST, settings.HEALTH_PORT)
        if settings.METRICS_TOKEN:
            # Before anything imports the library that counts.
            prepare_directory(settings.METRICS_DIR)
        self.check()
        self.stdout.write(describe_addresses(settings.PUBLIC_URL))
        self.stdout.flush()
        serve_beside(options["with"])
        if options["with"]:
            self.stdout.write("The library has stopped.")


def require_free_port(prefix: str, host: str, port: int) -> None:
    """Raises CommandError if the port is in use: two servers on one port would share the requests.

    `prefix` is that of the settings' names.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(f"Port {port} of {host} is in use. Set {prefix}PORT to another one.") from error
        raise CommandError(f"{prefix}HOST {host}, {prefix}PORT {port}: {os.strerror(error.errno or 0)}.") from error


def describe_addresses(origin: str) -> str:
    return (
        f"\nThe library is at {origin}\n\n"
        f"  API            {origin}/api/books\n"
        f"  Documentation  {origin}/docs\n"
        f"  Admin          {origin}/admin/\n"
        "                 For the first login run this in another terminal, with the same settings:\n"
        "                 .venv/bin/python manage.py createsuperuser\n\n"
        "Ctrl-C stops it.\n"
    )


def serve_beside(commands: Sequence[str]) -> None:
    """Serves until a signal stops the server, and runs the commands as long.

    They are process groups of their own: Ctrl-C in a terminal reaches a whole group, and each shall be told once.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def start_commands() -> None:
        calls = [[sys.executable, sys.argv[0], name, "--skip-checks"] for name in commands]
        processes.extend(subprocess.Popen(call, process_group=0) for call in calls)

    server = build_server(start_commands)
    prepare_workers()
    try:
        server.serve()
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
