"""Applies each migration to 300,000 books on PostgreSQL while clients read and write: the longest stall of a client.

Run it with `python -m benchmarks.upgrades`. The exit status is 1 if a stall is too long.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import NamedTuple

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.deliveries import Library, migrate_library
from benchmarks.support import databases, load
from benchmarks.support.arguments import Number, note, parse_options
from tests.support.postgres import start_cluster

MAX_STALL_MS = 500.0
# They make the tables. The books are seeded after all migrations, and those after these are taken back.
STARTS = {"books": "0001", "webhooks": "0001", "oauth": "0001"}
# Of columns that all versions of the table have.
STATEMENTS = {
    "read": "SELECT title FROM books_book WHERE id = %s",
    "write": "UPDATE books_book SET year = 1900 + %s %% 100 WHERE id = %s",
}


class Stall(NamedTuple):
    """The longest time of a statement in ms, and the number of statements."""

    milliseconds: float
    statements: int


class Trial(NamedTuple):
    migration: str
    seconds: float
    stalls: dict[str, Stall]

    @property
    def longest(self) -> float:
        return max(stall.milliseconds for stall in self.stalls.values())


def main() -> int:
    options = parse_options("benchmarks.upgrades", __doc__, books=Number(1_000, 1_000_000, 300_000))
    load.require_postgres()
    trials = list(try_migrations(options.books))
    Console(width=100).print(build_table(trials))
    misses = [trial for trial in trials if trial.longest > MAX_STALL_MS]
    for trial in misses:
        print(f"Missed: {trial.migration} stalls a client for {trial.longest:,.0f} ms")
    return 1 if misses else 0


def try_migrations(books: int) -> Iterator[Trial]:
    """Yields the clients' stalls without a migration, then with each."""
    # What a disk does with others' work is no stall of a migration.
    with start_cluster(shared_buffers="256MB", fsync="off", full_page_writes="off") as cluster:
        library = migrate_library(cluster.url(), cluster)
        migrations = list_migrations(library)
        databases.seed_library(library.url, books)
        note(f"{books:,} books take {measure_bytes(library, books)} bytes each with their indexes")
        for app, name in STARTS.items():
            library.run_command("migrate", "-v0", app, name)
        library.execute_sql("ANALYZE")
        yield measure("none", library, books, lambda: time.sleep(5))
        for app, name in migrations:
            trial = measure(f"{app}.{name}", library, books, partial(library.run_command, "migrate", "-v0", app, name))
            note(f"{trial.migration}: {trial.seconds:.1f} s, {trial.longest:,.0f} ms")
            yield trial


def list_migrations(library: Library) -> list[tuple[str, str]]:
    """The migrations after STARTS, in the order in which they are applied."""
    lines = library.run_command("showmigrations", "--plan").splitlines()
    migrations = [line.split()[-1].partition(".") for line in lines]
    return [(app, name) for app, _, name in migrations if app in STARTS and name[:4] > STARTS[app]]


def measure_bytes(library: Library, books: int) -> int:
    [(size,)] = library.execute_sql("SELECT pg_total_relation_size('books_book')")
    return int(size) // books


def measure(title: str, library: Library, books: int, action: Callable[[], object]) -> Trial:
    with run_clients(library.url, books) as running:
        start = time.perf_counter()
        action()
        seconds = time.perf_counter() - start
    return Trial(title, seconds, {kind: future.result() for kind, future in running.items()})


@contextmanager
def run_clients(url: str, books: int) -> Iterator[dict[str, "Future[Stall]"]]:
    stop = Event()
    with ThreadPoolExecutor(len(STATEMENTS)) as pool:
        try:
            yield {kind: pool.submit(run_client, url, kind, books, stop) for kind in STATEMENTS}
        finally:
            stop.set()


def run_client(url: str, kind: str, books: int, stop: Event) -> Stall:
    """Sends one statement after the other until it is stopped."""
    longest, count = 0.0, 0
    with psycopg.connect(url, autocommit=True) as connection:
        while not stop.wait(0.002):
            pk, start = random.randint(1, books), time.perf_counter()  # noqa: S311  # no secret
            connection.execute(STATEMENTS[kind], [pk] * STATEMENTS[kind].count("%s"))
            longest, count = max(longest, time.perf_counter() - start), count + 1
    return Stall(longest * 1000, count)


def build_table(trials: Sequence[Trial]) -> Table:
    table = Table("Migration", "s", *(f"longest {kind}, ms" for kind in STATEMENTS))
    for trial in trials:
        stalls = (f"{stall.milliseconds:,.0f} of {stall.statements:,}" for stall in trial.stalls.values())
        table.add_row(trial.migration, f"{trial.seconds:.1f}", *stalls)
    return table


if __name__ == "__main__":
    sys.exit(main())
