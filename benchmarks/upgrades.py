"""Applies each migration to 300,000 books on PostgreSQL while clients read and write: the longest stall of a client.

Run it with `python -m benchmarks.upgrades`. The exit status is 1 if a stall is too long.
"""

import random
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks.deliveries import Library, migrate_library
from benchmarks.support import databases, load
from benchmarks.support.arguments import make_integer_parser, note
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


class Client:
    """Sends one statement after the other until it is stopped."""

    def __init__(self, url: str, kind: str, books: int) -> None:
        self.url, self.kind, self.books = url, kind, books
        self.is_stopped = False

    def run(self) -> Stall:
        longest, count = 0.0, 0
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self.is_stopped:
                pk, start = random.randint(1, self.books), time.perf_counter()  # noqa: S311  # no secret
                connection.execute(STATEMENTS[self.kind], [pk] * STATEMENTS[self.kind].count("%s"))
                longest, count = max(longest, time.perf_counter() - start), count + 1
                time.sleep(0.002)
        return Stall(longest * 1000, count)


def main() -> int:
    options = parse_arguments()
    load.require_postgres()
    # SIGTERM must run the clean-up below too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    trials = list(try_migrations(options.books))
    Console(width=100).print(build_table(trials))
    misses = [trial for trial in trials if trial.longest > MAX_STALL_MS]
    for trial in misses:
        print(f"Missed: {trial.migration} stalls a client for {trial.longest:,.0f} ms")
    return 1 if misses else 0


def parse_arguments() -> "Options":
    parser = ArgumentParser(prog="python -m benchmarks.upgrades", description=__doc__)
    parser.add_argument("--books", type=make_integer_parser(1_000, 1_000_000), default=300_000)
    return parser.parse_args(namespace=Options())


class Options:
    books: int


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
            trial = measure(f"{app}.{name}", library, books, make_migration(library, app, name))
            note(f"{trial.migration}: {trial.seconds:.1f} s, {trial.longest:,.0f} ms")
            yield trial


def list_migrations(library: Library) -> list[tuple[str, str]]:
    """The migrations after STARTS, in the order in which they are applied."""
    lines = library.run_command("showmigrations", "--plan").splitlines()
    migrations = [line.split()[-1].partition(".") for line in lines]
    return [(app, name) for app, _, name in migrations if app in STARTS and name[:4] > STARTS[app]]


def make_migration(library: Library, app: str, name: str) -> Callable[[], object]:
    return lambda: library.run_command("migrate", "-v0", app, name)


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
    clients = [Client(url, kind, books) for kind in STATEMENTS]
    with ThreadPoolExecutor(len(clients)) as pool:
        try:
            yield {client.kind: pool.submit(client.run) for client in clients}
        finally:
            for client in clients:
                client.is_stopped = True


def build_table(trials: Sequence[Trial]) -> Table:
    table = Table("Migration", "s", *(f"longest {kind}, ms" for kind in STATEMENTS))
    for trial in trials:
        stalls = (f"{stall.milliseconds:,.0f} of {stall.statements:,}" for stall in trial.stalls.values())
        table.add_row(trial.migration, f"{trial.seconds:.1f}", *stalls)
    return table


if __name__ == "__main__":
    sys.exit(main())
