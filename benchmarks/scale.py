"""Measures the library with up to a million books and changes: `python -m benchmarks.scale` from the root."""

import secrets
import sys

from rich.console import Console
from rich.table import Table

from benchmarks import competitors
from benchmarks.support import databases, load
from benchmarks.support.arguments import Names, Number, note, parse_options
from benchmarks.support.credentials import create_credentials, create_session
from benchmarks.support.history_filling import fill_history
from benchmarks.support.libraries import LIBRARIES_BY_DATABASE
from benchmarks.support.questions import (
    API_KEY,
    CONSTANT_TIME_QUESTIONS,
    QUESTIONS,
    SESSION,
    LibraryClient,
    time_question,
)

SIZES = ["10000", "100000", "1000000"]
MAX_GROWTH = 1.5
# Enough for one client. The sessions of the admin are signed with the SECRET_KEY.
SETTINGS = {"WEB_CONCURRENCY": "1", "WEB_THREADS": "1", "SECRET_KEY": secrets.token_urlsafe(50)}
Times = dict[str, float]
"""Medians in milliseconds by the titles of the questions."""


def main() -> int:
    options = parse_options(
        "benchmarks.scale",
        __doc__,
        sizes=Names(SIZES),
        databases=Names(LIBRARIES_BY_DATABASE),
        seconds=Number(1, 600, 4, "for which each kind of request is sent"),
    )
    if "PostgreSQL" in options.databases:
        load.require_postgres()
    missed_goals = 0
    for database in options.databases:
        times = {int(size): measure_size(database, int(size), options.seconds) for size in options.sizes}
        Console(width=130).print(build_table(database, times), highlight=False)
        missed_goals += sum(has_missed(times, title) for title in QUESTIONS)
    return 1 if missed_goals else 0


def measure_size(database: str, size: int, seconds: int) -> Times:
    note(f"{database}: adding {size:,} books and as many changes")
    with LIBRARIES_BY_DATABASE[database]() as library:
        databases.seed_library(library.url, size)
        fill_history(library.url, size)
        # Wherever the library runs, so does its worker, which counts what pages show of many books.
        library.run_command("run_operations", "--once")
        with competitors.start_library(library.url, **SETTINGS) as server:
            [(name, session)] = create_session(library.url, SETTINGS["SECRET_KEY"]).items()
            key = dict([create_credentials(library.url, server.port)["api-key"]])
            client = LibraryClient(server.port, size, {API_KEY: key, SESSION: {"Cookie": f"{name}={session}"}})
            times = {}
            for title, question in QUESTIONS.items():
                times[title] = time_question(client, question, seconds)
                note(f"{size:,} books · {title}: {times[title]:.1f} ms")
            return times


def build_table(database: str, times: dict[int, Times]) -> Table:
    table = Table(f"{database}, median ms", *(f"{size:,}" for size in times), "growth")
    for title in QUESTIONS:
        goal = "" if title not in CONSTANT_TIME_QUESTIONS else " missed" if has_missed(times, title) else " kept"
        table.add_row(title, *(f"{row[title]:.1f}" for row in times.values()), f"{get_growth(times, title):.1f}{goal}")
    return table


def get_growth(times: dict[int, Times], title: str) -> float:
    return times[max(times)][title] / times[min(times)][title]


def has_missed(times: dict[int, Times], title: str) -> bool:
    return title in CONSTANT_TIME_QUESTIONS and get_growth(times, title) > MAX_GROWTH


if __name__ == "__main__":
    sys.exit(main())
