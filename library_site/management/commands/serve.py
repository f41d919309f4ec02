"""Starts the web server, alone or beside other commands."""

import errno
import logging
import os
import socket
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from threading import Event, Lock, Thread
from typing import Any

from django.conf import settings
from django.core.management import get_commands
from django.core.management.base import CommandError

from library_site.deployment.server import build_server, prepare_workers
from library_site.management.checked_command import CheckedCommand
from library_site.monitoring.metrics_files import prepare_directory
from library_site.monitoring.shutdown import end_with_parent

log = logging.getLogger("library_site.process")

# Seconds before a command that has ended is started again.
RESTART_PAUSE = 5.0


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
        if unknown := [name for name in options["with"] if name not in get_commands()]:
            raise CommandError(f"{unknown[0]} is no command.")
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


class CommandRunner(Thread):
    """Runs a command of manage.py until `stop`. One that ends before is started again."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.lock, self.stopping = Lock(), Event()
        self.process = self.start_process()

    def start_process(self) -> "subprocess.Popen[bytes]":
        """Starts a new process group: Ctrl-C signals a whole group, and each process must get the signal only once."""
        call = [sys.executable, sys.argv[0], self.name, "--skip-checks"]
        # As safe as the server's own forks, which it also makes while threads run.
        return subprocess.Popen(call, process_group=0, preexec_fn=partial(end_with_parent, os.getpid()))

    def run(self) -> None:
        while not self.stopping.is_set():
            status = self.process.wait()
            if not self.stopping.is_set():
                log.error("%s has ended with %d. It starts again in %d seconds.", self.name, status, RESTART_PAUSE)
            self.stopping.wait(RESTART_PAUSE)
            with self.lock:
                if not self.stopping.is_set():
                    self.process = self.start_process()

    def stop(self) -> None:
        with self.lock:
            self.stopping.set()
            self.process.terminate()


def serve_beside(commands: Sequence[str]) -> None:
    """Serves until a signal stops the server, and runs the commands until then."""
    runners: list[CommandRunner] = []

    def start_commands() -> None:
        for name in commands:
            # The first start comes before the server's own threads and processes.
            runners.append(CommandRunner(name))
            runners[-1].start()

    server = build_server(start_commands)
    prepare_workers()
    try:
        server.serve()
    finally:
        for runner in runners:
            runner.stop()
        for runner in runners:
            runner.process.wait()
