"""Starts the web server, in place of this process or beside other commands."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from library_site.granian_command import build_granian_command
from library_site.monitoring.listener import start_listener
from library_site.monitoring.metrics_files import prepare_directory
from library_site.monitoring.shutdown import watch_for_stop

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# glibc returns larger blocks to the system as soon as they are freed. By default it raises this threshold with the
# first large block, and keeps the memory of later ones.
MMAP_THRESHOLD = ("MALLOC_MMAP_THRESHOLD_", str(1024 * 1024))


class Command(BaseCommand):
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
        self.check()
        self.stdout.write(describe_addresses(settings.PUBLIC_URL))
        self.stdout.flush()
        os.environ["PYTHONPATH"] = os.pathsep.join([str(settings.BASE_DIR), os.environ.get("PYTHONPATH", "")])
        os.environ.setdefault(*MMAP_THRESHOLD)
        if settings.METRICS_TOKEN:
            prepare_directory(settings.METRICS_DIR)
        command = build_granian_command(
            settings.HOST, settings.PORT, settings.WEB_CONCURRENCY, settings.WEB_THREADS, settings.STOP_TIMEOUT
        )
        command += [
            "--log-config",
            open_pipe(json.dumps(settings.LOGGING)),
            "--factory",
            f"{__name__}:load_application",
        ]
        if not options["with"]:
            os.execv(sys.executable, command)
        companions = [[sys.executable, sys.argv[0], name, "--skip-checks"] for name in options["with"]]
        status = run_together(command, *companions)
        self.stdout.write("The library has stopped.")
        sys.exit(status)


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


def run_together(server: list[str], *companions: list[str]) -> int:
    """Runs all until the server ends, and returns its status. A signal that stops this process stops all.

    They are process groups of their own: Ctrl-C in a terminal reaches a whole group, and each shall be told once.
    """
    processes: list[subprocess.Popen[bytes]] = []

    def stop_all(*_: object) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        for process in processes:
            process.terminate()

    for number in STOP_SIGNALS:
        signal.signal(number, stop_all)
    # One by one, so that a signal in between stops the first.
    processes += (subprocess.Popen(command, process_group=0, close_fds=False) for command in (server, *companions))
    try:
        return processes[0].wait()
    finally:
        stop_all()
        for process in processes[1:]:
            process.wait()


def load_application() -> "WSGIApplication":
    """Returns the application; each worker of the server calls it when it starts."""
    # Ctrl-C reaches the workers too, and one that ends before it is told to looks like a crash to the server.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    # Until a worker serves, it has the server's handler, which would only take note of the stop.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    from library_site.wsgi import application

    watch_for_stop()
    if settings.HEALTH_PORT:
        start_listener(settings.HEALTH_HOST, settings.HEALTH_PORT)
    if settings.METRICS_TOKEN:
        from library_site.monitoring.metrics import start_sampling

        start_sampling()
    return application


def open_pipe(text: str) -> str:
    """Returns a path from which the server can read the text once; no file stays behind."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    os.set_inheritable(read_end, True)  # noqa: FBT003  # os defines it so
    return f"/dev/fd/{read_end}"
