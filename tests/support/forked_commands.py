"""Runs `manage.py` in copies of one process that has loaded Django: a command starts in 0.02 seconds instead of 1.2.

Each copy has its own environment, folder and output, reads the settings anew, and runs the whole of `manage.py`. What a
test must prove of a real start (variables that Python itself reads, what a process loads) starts a process of its own.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from asgiref.local import Local

from tests.support.waiting import PROCESS_TIMEOUT

MAX_REQUEST_BYTES = 1_000_000
LOCK = Lock()


class ForkedProcess:
    """A command of `manage.py` in this folder, which runs. It has no input, and is the first of a new process group."""

    def __init__(self, environment: Mapping[str, str], *command: str, output: int, errors: int) -> None:
        self.args = ["manage.py", *command]
        self.returncode: int | None = None
        request = json.dumps([dict(environment), str(Path.cwd()), command]).encode()
        self.messages, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, LOCK:
            server = start_server(environment.get("DATABASE_URL", "").partition(":")[0])
            socket.send_fds(server, [request], [theirs.fileno(), output, errors])
        self.pid = int(self.messages.recv(16))

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.messages.settimeout(timeout)
            try:
                # The socket of a copy that a signal has ended is closed without a word.
                self.returncode = int(self.messages.recv(16) or -signal.SIGKILL)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.messages.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


def run_forked(environment: Mapping[str, str], *command: str) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = ForkedProcess(environment, *command, output=output.fileno(), errors=errors.fileno())
        try:
            process.wait(PROCESS_TIMEOUT)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(process.args, process.wait(), output.read(), errors.read())


@cache
def start_server(kind: str) -> socket.socket:
    """A process for each kind of database, which no copy of it has used yet."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_REQUEST_BYTES)
    with theirs:
        call = [sys.executable, "-m", __name__, str(theirs.fileno())]
        environment = os.environ | ({"DATABASE_URL": f"{kind}:///none"} if kind in ("sqlite", "postgresql") else {})
        # Its end is the end of the socket.
        server = subprocess.Popen(call, env=environment, pass_fds=[theirs.fileno()], start_new_session=True)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def serve(requests: socket.socket) -> None:
    load_library()
    # Nobody waits for the copies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        if not message:
            return
        if not os.fork():
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(run_copy(*json.loads(message), *descriptors))
        for descriptor in descriptors:
            os.close(descriptor)


def load_library() -> None:
    import django
    from django.core.management import get_commands, load_command_class
    from django.db.migrations.loader import MigrationLoader

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")
    django.setup()
    # Those of `oauth` load what reads settings.
    for name, app in get_commands().items():
        if app in ("books", "webhooks", "library_site"):
            load_command_class(app, name)
    MigrationLoader(None)
    gc.collect()
    gc.freeze()


def run_copy(
    environment: dict[str, str], folder: str, command: list[str], response: int, output: int, errors: int
) -> int:
    os.setsid()
    os.write(response, str(os.getpid()).encode())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    forget_settings()
    sys.argv = ["manage.py", *command]
    status: int | str | None = 0
    try:
        runpy.run_path("manage.py", run_name="__main__")
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(response, str(status or 0).encode())
    return 0


def forget_settings() -> None:
    """Makes Django and the library read the settings of this environment."""
    from django import conf, db
    from django.utils import functional

    from library_site import cached_settings
    from library_site.db.sql import thread_connection
    from library_site.deployment import env

    lazy: Any = conf.settings
    connections: Any = db.connections
    module = sys.modules.pop("library_site.settings")
    # Some apps add their defaults when they are imported.
    defaults = {name: value for name, value in vars(lazy._wrapped).items() if not hasattr(module, name)}
    read = type(lazy)._setup

    def read_with_defaults(lazy: Any, name: str | None = None) -> None:
        read(lazy, name)
        for default in defaults.keys() - vars(lazy._wrapped).keys():
            setattr(lazy._wrapped, default, defaults[default])

    type(lazy)._setup = read_with_defaults
    vars(lazy).clear()
    vars(lazy)["_wrapped"] = functional.empty
    vars(connections).pop("settings", None)
    connections._settings = None
    connections._connections = Local(connections.thread_critical)
    env.read_names.clear()
    env.problems.clear()
    cached_settings.forget_settings()
    # Lazy: manage.py sets variables before it reads the settings.
    database: Any = functional.SimpleLazyObject(lambda: connections[db.DEFAULT_DB_ALIAS])
    thread_connection.database = database


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
