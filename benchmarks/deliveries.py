"""Starts a library, its workers and a receiver on this machine, for all benchmarks of webhooks."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.competitors import ROOT, build_environment
from tests.support.postgres import Cluster, start_cluster
from tests.support.sql import count_rows, fetch_all

# Seconds before a wait fails.
WAIT_TIMEOUT = 600
CREATE_ENDPOINTS_CODE = """
from tests.support.endpoints import create_endpoint, create_owner
owner = create_owner()
for path in {paths!r}:
    create_endpoint(owner, url="http://127.0.0.1:{port}/" + path)
"""
PUBLISH_EVENTS_CODE = """
from django.db import transaction
from django.utils import timezone
from books.writing.events import BOOK_CREATED
from webhooks.outbox import EventData, publish
time = "2026-01-31T09:30:00.000000Z"
book = {{"id": 1, "title": "Pride and Prejudice", "author": "Jane Austen", "year": 1813, "isbn": "9799900000012",
    "isbn13": "9799900000012", "genre": "Romance", "available": True, "created_at": time, "updated_at": time,
    "version": 1}}
with transaction.atomic():
    publish([EventData(BOOK_CREATED, n, {{"book": book, "previous": {{}}}}) for n in range({events})], timezone.now())
"""


class WaitTimedOut(Exception):
    """The condition is not true in time."""


class LoggedRequest(NamedTuple):
    """A request that the receiver logged: its Unix time, its path and the event's id."""

    received_at: float
    path: str
    event: str


@dataclass(frozen=True)
class Receiver:
    port: int
    log: Path

    def list_requests(self) -> list[LoggedRequest]:
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [LoggedRequest(float(received_at), path, event) for received_at, path, event in lines]

    def count_requests(self) -> int:
        return self.log.read_bytes().count(b"\n")


@dataclass(frozen=True)
class Library:
    url: str
    environment: dict[str, str]
    # None on SQLite.
    cluster: Cluster | None

    def run_command(self, *command: str, **variables: str) -> str:
        """Returns the output of a management command; `variables` change its environment."""
        full_command = [sys.executable, "manage.py", *command]
        environment = self.environment | variables
        return subprocess.run(
            full_command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=WAIT_TIMEOUT
        ).stdout

    def run_code(self, code: str) -> str:
        return self.run_command("shell", "-v0", "-c", code)

    def execute_sql(self, statement: str) -> list[tuple[Any, ...]]:
        return fetch_all(self.url, statement)

    def count_rows(self, condition: str, table: str = "delivery") -> int:
        return count_rows(self.url, condition, table)

    def publish(self, events: int) -> None:
        """Publishes events in one transaction."""
        self.run_code(PUBLISH_EVENTS_CODE.format(events=events))
        self.execute_sql("ANALYZE")

    def start_worker(self, *options: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "manage.py", "deliver_webhooks", *options]
        return subprocess.Popen(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @contextmanager
    def run_workers(self, count: int = 1, *options: str) -> Iterator[list["subprocess.Popen[bytes]"]]:
        """Runs `count` workers. Workers that are added to the list are stopped with them."""
        workers = [self.start_worker(*options) for _ in range(count)]
        try:
            yield workers
        finally:
            stop_workers(workers)


def summarize_requests(requests: list[LoggedRequest]) -> str:
    count = len({(request.path, request.event) for request in requests})
    return f"{len(requests):,} requests for {count:,} deliveries: {len(requests) - count:,} duplicates"


def count_lost(library: Library, requests: list[LoggedRequest]) -> int:
    """Deliveries of the database that the receiver never got, and requests that belong to no delivery."""
    rows = library.execute_sql(
        """
        SELECT event.uuid, endpoint.url FROM webhooks_delivery AS delivery
        JOIN webhooks_event AS event ON event.id = event_id
        JOIN webhooks_endpoint AS endpoint ON endpoint.id = endpoint_id
        """
    )
    deliveries = {(str(uuid).replace("-", ""), "/" + url.split("/", 3)[3]) for uuid, url in rows}
    return len(deliveries ^ {(request.event.replace("-", ""), request.path) for request in requests})


def stop_workers(workers: list["subprocess.Popen[bytes]"]) -> None:
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
        worker.terminate()
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(20)
        worker.kill()
        worker.wait()


@contextmanager
def start_library_and_receiver(database: str, *paths: str) -> Iterator[tuple[Library, Receiver]]:
    """A library with an endpoint for each of these paths of a receiver."""
    with LIBRARIES_BY_DATABASE[database]() as library, start_receiver() as receiver:
        library.run_code(CREATE_ENDPOINTS_CODE.format(paths=paths, port=receiver.port))
        yield library, receiver


@contextmanager
def start_receiver() -> Iterator[Receiver]:
    with tempfile.TemporaryDirectory(prefix="library-receiver-") as folder:
        log = Path(folder) / "log"
        command = [sys.executable, "-m", "benchmarks.receiver", str(log)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
            output: Any = process.stdout
            try:
                yield Receiver(int(output.readline()), log)
            finally:
                process.kill()


@contextmanager
def create_postgresql_library() -> Iterator[Library]:
    with start_cluster(shared_buffers="256MB", max_connections="100") as cluster:
        yield migrate_library(cluster.url(), cluster)


@contextmanager
def create_sqlite_library() -> Iterator[Library]:
    with tempfile.TemporaryDirectory(prefix="library-sqlite-") as folder:
        yield migrate_library(f"sqlite:///{folder}/library.sqlite3", None)


def migrate_library(url: str, cluster: Cluster | None) -> Library:
    library = Library(
        url, build_environment(url) | {"WEBHOOKS_ALLOW_PRIVATE": "true", "LIBRARY_ACCESS": "protect-writes"}, cluster
    )
    library.run_command("migrate", "-v0")
    return library


LIBRARIES_BY_DATABASE = {"PostgreSQL": create_postgresql_library, "SQLite": create_sqlite_library}


def wait_until(condition: Callable[[], bool], seconds: float = WAIT_TIMEOUT, pause: float = 0.05) -> None:
    """Raises WaitTimedOut."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise WaitTimedOut
        time.sleep(pause)
