"""A reader of files in a thread of the tests: the same messages, without a process and its limits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import socket, socketpair
from threading import Thread

from books.files.sandbox import messages
from books.files.sandbox.client import TICK
from books.files.sandbox.tasks import serve


@contextmanager
def start_reader_thread() -> Iterator[socket]:
    ours, theirs = socketpair()
    thread = Thread(target=serve_job, args=(theirs,))
    thread.start()
    try:
        with ours:
            ours.settimeout(TICK)
            yield ours
    finally:
        thread.join()


def serve_job(connection: socket) -> None:
    with connection, suppress(OSError, EOFError):
        _kind, content = messages.receive(connection)
        messages.send(connection, messages.READY)
        serve(connection, json.loads(content))
