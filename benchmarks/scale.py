"""The library alone, from 10,000 books to a million: `python -m benchmarks.scale` from the root of the repository."""

import signal
import sqlite3
import statistics
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import psycopg
from rich.console import Console
from rich.table import Table

from benchmarks import competitors, databases, load
from benchmarks.arguments import among, note, within
from benchmarks.competitors import OURS
from benchmarks.questions import (
    LEVEL,
    QUESTIONS,
    SHORT_ABSENT_ONCE,
    SHORT_ABSENT_TWICE,
    Effort,
    Library,
    Request,
    Timing,
    timed,
)
from tests.support.postgres import throwaway_cluster

SIZES = ["10000", "100000", "1000000"]
LEVEL_FACTOR = 1.5
# One client in sequence needs no more, and all its statements meet on one connection to the database.
ONE_THREAD = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "1"}
STATISTICS = {
    "postgresql": "SELECT count(*) FROM pg_stats WHERE tablename = 'books_book'",
    "sqlite": "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 'books_book'",
}

Results = Mapping[tuple[str, int], Timing]
"""By the titles of the questions and the sizes."""


class Findings(NamedTuple):
    """Timings by the titles of the questions, MiB of the worker after them, and traps that the database fell into."""

    timings: Mapping[str, Timing]
    mib: float
    traps: Sequence[str]


Place = tuple[Callable[[int], str], list[int]]
"""The address of a new database for so many books, and what else runs for it."""


def main() -> int:
    options = arguments()
    # A plain kill must run the clean-up below too, or the servers would outlive us.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sizes = [int(size) for size in options.sizes]
    effort = Effort(options.requests, options.seconds)
    missed = [words for database in options.databases for words in measured(database, sizes, effort)]
    for words in missed:
        print(f"Missed on {words}")
    return 1 if missed else 0


def arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--sizes", type=among(SIZES), default=SIZES, help=", ".join(SIZES))
    parser.add_argument("--databases", type=among(DATABASES), default=list(DATABASES), help=", ".join(DATABASES))
    parser.add_argument("--requests", type=within(10, 9_000), default=500, help="of each kind, after two to warm up")
    parser.add_argument("--seconds", type=within(1, 600), default=4, help="for which each kind is asked at most")
    return parser.parse_args()


def measured(database: str, sizes: Sequence[int], effort: Effort) -> list[str]:
    """Prints the table of one database; answers which goals it missed."""
    with DATABASES[database]() as (address, processes):
        findings = {size: at_size(database, address(size), processes, size, effort) for size in sizes}
    results = {(title, size): found.timings[title] for size, found in findings.items() for title in found.timings}
    title = f"\n{database}: median / p99, and CPU a request of server and database"
    made = table(results, sizes, [findings[size].mib for size in sizes])
    Console(width=130).print(title, made, sep="\n", highlight=False)
    trapped = [f"{database}, {size:,} books: {trap}" for size, found in findings.items() for trap in found.traps]
    return trapped + [
        f"{database}: {title} grows {growth(results, sizes, title):.1f} times" for title in grown(results, sizes)
    ]


def at_size(database: str, url: str, processes: Sequence[int], size: int, effort: Effort) -> Findings:
    note(f"{database}: seeding {size:,} books")
    databases.seed(url, size)
    unplanned = [] if statistics_are_there(database, url) else ["no ANALYZE after seeding"]
    with competitors.started(OURS, url, **ONE_THREAD) as server:
        library = Library(server.port, size, [server.pid, *processes])
        turned = plans_that_turn(library)
        timings = {title: answered(library, title, effort) for title in QUESTIONS}
        return Findings(timings, load.memory(server.pid), [*unplanned, *turned, *patterns_by_index(timings)])


def answered(library: Library, title: str, effort: Effort) -> Timing:
    timing = timed(library, QUESTIONS[title], effort)
    note(f"{library.books:,} books · {title}: {shown(timing)}")
    return timing


@contextmanager
def postgresql() -> Iterator[Place]:
    with throwaway_cluster(shared_buffers="256MB") as cluster:

        def address(size: int) -> str:
            cluster.run(f"CREATE DATABASE books_{size}")
            return cluster.url(f"books_{size}")

        yield address, [load.postmaster(cluster)]


@contextmanager
def sqlite() -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="library-sqlite-") as folder:
        yield lambda size: f"sqlite:///{folder}/{size}.sqlite3", []


DATABASES = {"postgresql": postgresql, "sqlite": sqlite}


def statistics_are_there(database: str, url: str) -> bool:
    """Without them a planner takes the slow way."""
    opened: Any = sqlite3.connect(url.removeprefix("sqlite:///")) if database == "sqlite" else psycopg.connect(url)
    with closing(opened) as connection:
        (found,) = connection.execute(STATISTICS[database]).fetchone()
    return bool(found)


def plans_that_turn(library: Library) -> list[str]:
    """PostgreSQL plans a prepared statement anew five times, and may then keep a plan that suits no filter."""
    times = [library.ask(Request("/api/books?author=johnson&genre=novel")) for _ in range(20)]
    first, then = statistics.median(times[1:5]), statistics.median(times[5:])
    return [f"two filters: {first:.1f} ms, {then:.1f} ms after the fifth"] if then > 2 * first + 1 else []


def patterns_by_index(timings: Mapping[str, Timing]) -> list[str]:
    """A pattern that no index has an entry for costs one reading of the table, however many of them there are."""
    once, twice = (timings[title].median_ms for title in (SHORT_ABSENT_ONCE, SHORT_ABSENT_TWICE))
    return [f"two absent patterns: {twice:.1f} ms, one: {once:.1f} ms"] if twice > 1.8 * once + 1 else []


def table(results: Results, sizes: Sequence[int], memory: Sequence[float]) -> Table:
    made = Table("", *(f"{size:,}" for size in sizes), f"{sizes[-1]:,} : {sizes[0]:,}")
    missed = grown(results, sizes)
    for title in QUESTIONS:
        goal = "" if title not in LEVEL else " missed" if title in missed else " kept"
        times = (shown(results[title, size]) for size in sizes)
        made.add_row(title, *times, f"{growth(results, sizes, title):.1f}{goal}")
    made.add_row("MiB of the worker", *(f"{mib:.0f}" for mib in memory), f"{memory[-1] / memory[0]:.1f}")
    return made


def shown(timing: Timing) -> str:
    return f"{timing.median_ms:.1f} / {timing.p99_ms:.1f} ms, {timing.cpu_us:,.0f} µs"


def growth(results: Results, sizes: Sequence[int], title: str) -> float:
    return results[title, sizes[-1]].median_ms / results[title, sizes[0]].median_ms


def grown(results: Results, sizes: Sequence[int]) -> list[str]:
    """What should take no longer however many books there are, and does."""
    return [title for title in LEVEL if growth(results, sizes, title) > LEVEL_FACTOR]


if __name__ == "__main__":
    sys.exit(main())
