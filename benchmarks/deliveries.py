"""A library whose events are delivered to a receiver on this machine, for all that is measured of webhooks."""

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

from benchmarks.competitors import ROOT, environment
from tests.support.postgres import Cluster, throwaway_cluster
from tests.support.sql import asked, counted

# Seconds for whatever is waited for.
LONGEST = 600
PREPARATION = """
from tests.support.endpoints import endpoint, listener
owner = listener()
for path in {paths!r}:
    endpoint(owner, url="http://127.0.0.1:{port}/" + path)
"""
PUBLICATION = """
from django.db import transaction
from django.utils import timezone
from books.events import CREATED
from webhooks.outbox import Announcement, publish
moment = "2026-01-31T09:30:00.000000Z"
book = {{"id": 1, "title": "Pride and Prejudice", "author": "Jane Austen", "year": 1813, "isbn": "9799900000012",
    "isbn13": "9799900000012", "genre": "Romance", "available": True, "created_at": moment, "updated_at": moment,
    "version": 1}}
with transaction.atomic():
    publish([Announcement(CREATED, n, {{"book": book, "previous": {{}}}}) for n in range({events})], timezone.now())
"""


class TookTooLong(Exception):
    """What was waited for did not come."""


class Sent(NamedTuple):
    """As the receiver saw it: when (Unix time), at which path, and the event's id."""

    at: float
    path: str
    event: str


@dataclass(frozen=True)
class Receiver:
    port: int
    log: Path

    def sent(self) -> list[Sent]:
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [Sent(float(at), path, event) for at, path, event in lines]

    def count(self) -> int:
        return self.log.read_bytes().count(b"\n")


@dataclass(frozen=True)
class Library:
    url: str
    environment: dict[str, str]
    # Where it is on PostgreSQL.
    cluster: Cluster | None

    def manage(self, *command: str, **changed: str) -> str:
        """What it says."""
        call = [sys.executable, "manage.py", *command]
        environment = self.environment | changed
        return subprocess.run(
            call, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=LONGEST
        ).stdout

    def shell(self, code: str) -> str:
        return self.manage("shell", "-v0", "-c", code)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        return asked(self.url, statement)

    def count(self, condition: str, table: str = "delivery") -> int:
        return counted(self.url, condition, table)

    def publish(self, events: int) -> None:
        """In one transaction."""
        self.shell(PUBLICATION.format(events=events))
        self.sql("ANALYZE")

    def worker(self, *options: str) -> "subprocess.Popen[bytes]":
        call = [sys.executable, "manage.py", "deliver_webhooks", *options]
        return subprocess.Popen(
            call, cwd=ROOT, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @contextmanager
    def working(self, count: int = 1, *options: str) -> Iterator[list["subprocess.Popen[bytes]"]]:
        """So many workers; whoever is added to the list ends with them."""
        workers = [self.worker(*options) for _ in range(count)]
        try:
            yield workers
        finally:
            end(workers)


def end(workers: list["subprocess.Popen[bytes]"]) -> None:
    for worker in workers:
        worker.send_signal(signal.SIGCONT)
        worker.terminate()
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(20)
        worker.kill()
        worker.wait()


@contextmanager
def listening(database: str, *paths: str) -> Iterator[tuple[Library, Receiver]]:
    """A library with an endpoint at each of these paths of a receiver."""
    with DATABASES[database]() as library, receiving() as receiver:
        library.shell(PREPARATION.format(paths=paths, port=receiver.port))
        yield library, receiver


@contextmanager
def receiving() -> Iterator[Receiver]:
    with tempfile.TemporaryDirectory(prefix="library-receiver-") as folder:
        log = Path(folder) / "log"
        call = [sys.executable, "-m", "benchmarks.receiver", str(log)]
        with subprocess.Popen(call, cwd=ROOT, stdout=subprocess.PIPE) as process:
            told: Any = process.stdout
            try:
                yield Receiver(int(told.readline()), log)
            finally:
                process.kill()


@contextmanager
def on_postgresql() -> Iterator[Library]:
    with throwaway_cluster(shared_buffers="256MB", max_connections="100") as cluster:
        yield migrated(cluster.url(), cluster)


@contextmanager
def on_sqlite() -> Iterator[Library]:
    with tempfile.TemporaryDirectory(prefix="library-sqlite-") as folder:
        yield migrated(f"sqlite:///{folder}/library.sqlite3", None)


def migrated(url: str, cluster: Cluster | None) -> Library:
    made = Library(
        url, environment(url) | {"WEBHOOKS_ALLOW_PRIVATE": "true", "LIBRARY_ACCESS": "protect-writes"}, cluster
    )
    made.manage("migrate", "-v0")
    return made


DATABASES = {"PostgreSQL": on_postgresql, "SQLite": on_sqlite}


def until(condition: Callable[[], bool], seconds: float = LONGEST, pause: float = 0.05) -> None:
    """Raises TookTooLong."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TookTooLong
        time.sleep(pause)
