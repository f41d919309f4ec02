"""Clients ask for files and stop reading amid writes: what others ask for is answered meanwhile."""

import socket
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library
from benchmarks.outages.running_writers import (
    ALIVE_LIMIT,
    ANSWER_LIMIT,
    Watch,
    build_finding,
    count_late,
    fill,
    run_watches,
    serve_writers,
    summarize_waits,
    wait_for_writes,
)
from benchmarks.support.findings import Finding

# Their files are larger than what server and client store of them.
BOOK_COUNT = 60_000
READER_COUNT, ADDRESS_COUNT, WRITER_COUNT = 64, 16, 4
STALL_SECONDS = 10.0
SETTINGS = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "8", "NUM_PROXIES": "1"}
FORMATS = ("text/csv", "application/x-ndjson")


def check_slow_readers(options: Namespace) -> Iterator[Finding]:
    for database, create_library in LIBRARIES_BY_DATABASE.items():
        with create_library() as library:
            fill(library, BOOK_COUNT)
            yield stall(library, database)


def stall(library: Library, database: str) -> Finding:
    with serve_writers(library.url, WRITER_COUNT, **SETTINGS) as (server, running):
        address = f"http://127.0.0.1:{server.port}"
        limits = {"/livez": ALIVE_LIMIT, "/api/books/1": ANSWER_LIMIT, "/admin/login/": ANSWER_LIMIT}
        watches = [Watch(f"{address}{path}", limit) for path, limit in limits.items()]
        with run_readers(server.port), run_watches(watches):
            wait_for_writes(running)
            time.sleep(STALL_SECONDS)
            wait_for_writes(running)
    name = f"{READER_COUNT} clients of {ADDRESS_COUNT} addresses stop reading, {database}"
    waits, late = summarize_waits(watches, running), count_late(watches, running)
    return build_finding(name, library.url, running, waits, wrong=late, seeded=BOOK_COUNT)


@contextmanager
def run_readers(port: int) -> Iterator[None]:
    """Asks for files and reads nothing of them."""
    with ExitStack() as stack:
        for number in range(READER_COUNT):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(
                f"GET /api/v2/books HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: {FORMATS[number % len(FORMATS)]}\r\n"
                f"X-Forwarded-For: 192.0.2.{number % ADDRESS_COUNT}\r\n\r\n".encode()
            )
        yield
