"""Measures the library with up to a million books and changes: `python -m benchmarks.scale` from its root folder."""

import secrets
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks import competitors
from benchmarks.questions import (
    API_KEY,
    CONSTANT_TIME_QUESTIONS,
    ONE_ABSENT_PATTERN,
    QUESTIONS,
    SESSION,
    TWO_ABSENT_PATTERNS,
    Credentials,
    Effort,
    LibraryClient,
    Request,
    Timing,
    time_question,
)
from benchmarks.support import databases, load
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.credentials import create_credentials, create_session
from benchmarks.support.history_filling import ChangeSize, Expiry, fill_history, measure_change, time_expiry
from tests.support.postgres import start_cluster

SIZES = ["10000", "100000", "1000000"]
# It takes half an hour and 20 GB.
LARGEST_SIZE = "10000000"
MAX_GROWTH = 1.5
# Enough for one client that sends one request after the other; all statements use one connection to the database. The
# sessions of the admin are signed with the SECRET_KEY.
SETTINGS = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "1", "SECRET_KEY": secrets.token_urlsafe(50)}
STATISTICS_SQL = {
    "postgresql": "SELECT count(*) FROM pg_stats WHERE tablename = 'books_book'",
    "sqlite": "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'books_book'",
}

Results = Mapping[tuple[str, int], Timing]
"""Timings by the titles of the questions and the sizes."""


class Findings(NamedTuple):
    """Timings by the titles of the questions, the MiB of the worker after them, and problems of the database.

    `change` is the size of a change, `expiry` the deletion of old ones after all questions.
    """

    timings: Mapping[str, Timing]
    mib: float
    problems: Sequence[str]
    change: ChangeSize
    expiry: Expiry


DatabaseServer = tuple[Callable[[int], str], list[int]]
"""A function that returns the address of a new database for a number of books, and the ids of its processes."""


def main() -> int:
    options = parse_options(
        "benchmarks.scale",
        __doc__,
        sizes=Names(SIZES, extra=[LARGEST_SIZE]),
        databases=Names(DATABASES),
        requests=Number(10, 9_000, 500, "of each kind, after two to warm up"),
        seconds=Number(1, 600, 4, "for which each kind is asked at most"),
    )
    if "postgresql" in options.databases:
        load.require_postgres()
    sizes = [int(size) for size in options.sizes]
    effort = Effort(options.requests, options.seconds)
    misses = [miss for database in options.databases for miss in measure_database(database, sizes, effort)]
    for miss in misses:
        print(f"Missed on {miss}")
    return 1 if misses else 0


def measure_database(database: str, sizes: Sequence[int], effort: Effort) -> list[str]:
    """Prints the table of one database. Returns the goals that it missed."""
    with DATABASES[database]() as (create_database, pids):
        findings = {size: measure_size(database, create_database(size), pids, size, effort) for size in sizes}
    results = {(title, size): timing for size, row in findings.items() for title, timing in row.timings.items()}
    title = f"\n{database}: median / p99, and CPU a request of server and database"
    table = build_table(results, findings)
    Console(width=130).print(title, table, sep="\n", highlight=False)
    problems = [f"{database}, {size:,} books: {text}" for size, row in findings.items() for text in row.problems]
    return problems + [
        f"{database}: {title} grows {get_growth(results, sizes, title):.1f} times"
        for title in list_missed_questions(results, sizes)
    ]


def measure_size(database: str, url: str, pids: Sequence[int], size: int, effort: Effort) -> Findings:
    note(f"{database}: adding {size:,} books and as many changes")
    databases.seed_library(url, size)
    fill_history(url, size)
    change = measure_change(url)
    missing_statistics = [] if has_statistics(database, url) else ["no ANALYZE after seeding"]
    with competitors.start_library(url, **SETTINGS) as server:
        client = LibraryClient(server.port, size, [server.pid, *pids], create_client_credentials(url, server.port))
        worse_plans = find_worse_plans(client)
        timings = {title: measure_question(client, title, effort) for title in QUESTIONS}
        problems = [*missing_statistics, *worse_plans, *find_slow_patterns(timings)]
        return Findings(timings, load.get_memory(server.pid), problems, change, time_expiry(url, client))


def create_client_credentials(url: str, port: int) -> Credentials:
    [(name, session)] = create_session(url, SETTINGS["SECRET_KEY"]).items()
    return {API_KEY: dict([create_credentials(url, port)["api-key"]]), SESSION: {"Cookie": f"{name}={session}"}}


def measure_question(client: LibraryClient, title: str, effort: Effort) -> Timing:
    timing = time_question(client, QUESTIONS[title], effort)
    note(f"{client.books:,} books · {title}: {format_timing(timing)}")
    return timing


@contextmanager
def start_postgresql() -> Iterator[DatabaseServer]:
    with start_cluster(shared_buffers="256MB") as cluster:

        def create_database(size: int) -> str:
            cluster.run(f"CREATE DATABASE books_{size}")
            return cluster.url(f"books_{size}")

        yield create_database, [load.get_postmaster_pid(cluster)]


@contextmanager
def create_sqlite_folder() -> Iterator[DatabaseServer]:
    with tempfile.TemporaryDirectory(prefix="library-sqlite-") as folder:
        yield lambda size: f"sqlite:///{folder}/{size}.sqlite3", []


DATABASES = {"postgresql": start_postgresql, "sqlite": create_sqlite_folder}


def has_statistics(database: str, url: str) -> bool:
    """Whether the planner has statistics: without them it chooses slow plans."""
    database_connection: Any = (
        sqlite3.connect(url.removeprefix("sqlite:///")) if database == "sqlite" else psycopg.connect(url)
    )
    with closing(database_connection) as connection:
        (count,) = connection.execute(STATISTICS_SQL[database]).fetchone()
    return bool(count)


def find_worse_plans(client: LibraryClient) -> list[str]:
    """PostgreSQL plans a prepared statement anew five times, and may then keep a generic plan that is slower."""
    times = [client.send(Request("/api/books?author=johnson&genre=novel")) for _ in range(20)]
    early, late = statistics.median(times[1:5]), statistics.median(times[5:])
    return [f"two filters: {early:.1f} ms, {late:.1f} ms after the fifth"] if late > 2 * early + 1 else []


def find_slow_patterns(timings: Mapping[str, Timing]) -> list[str]:
    """Patterns without an entry in an index should cost one scan of the table, even if there are several."""
    one, two = (timings[title].median_ms for title in (ONE_ABSENT_PATTERN, TWO_ABSENT_PATTERNS))
    return [f"two absent patterns: {two:.1f} ms, one: {one:.1f} ms"] if two > 1.8 * one + 1 else []


def build_table(results: Results, findings: Mapping[int, Findings]) -> Table:
    sizes, memory = list(findings), [row.mib for row in findings.values()]
    table = Table("", *(f"{size:,}" for size in sizes), f"{sizes[-1]:,} : {sizes[0]:,}")
    missed_titles = list_missed_questions(results, sizes)
    for title in QUESTIONS:
        goal = "" if title not in CONSTANT_TIME_QUESTIONS else " missed" if title in missed_titles else " kept"
        times = (format_timing(results[title, size]) for size in sizes)
        table.add_row(title, *times, f"{get_growth(results, sizes, title):.1f}{goal}")
    table.add_row("MiB of the worker", *(f"{mib:.0f}" for mib in memory), f"{memory[-1] / memory[0]:.1f}")
    table.add_row("bytes of a change, in its table + indexes", *(str(row.change) for row in findings.values()), "")
    table.add_row("old changes deleted, a PUT meanwhile", *(str(row.expiry) for row in findings.values()), "")
    return table


def format_timing(timing: Timing) -> str:
    return f"{timing.median_ms:.1f} / {timing.p99_ms:.1f} ms, {timing.cpu_us:,.0f} µs"


def get_growth(results: Results, sizes: Sequence[int], title: str) -> float:
    return results[title, sizes[-1]].median_ms / results[title, sizes[0]].median_ms


def list_missed_questions(results: Results, sizes: Sequence[int]) -> list[str]:
    """The titles of CONSTANT_TIME_QUESTIONS whose time grows more than MAX_GROWTH."""
    return [title for title in CONSTANT_TIME_QUESTIONS if get_growth(results, sizes, title) > MAX_GROWTH]


if __name__ == "__main__":
    sys.exit(main())
