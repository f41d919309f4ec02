"""Prints the tables, with a row for each column that was measured, and the limits below them.

The goals are requests/s of our service with all its features, as multiples of peers that lack them or, where they are
equal, have a history and events, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.competitors import COMPETITORS, EQUAL_FASTAPI, FASTIFY, LIBRARIES, OURS
from benchmarks.support.load import COLUMNS, CREDENTIAL_COLUMNS, Measurement

READS, WRITES = ("get", "list100", "list10", "rare", "common"), ("put", "post")
# By the name of the peer, and by column: the same for any headers and with a rate limit.
GOALS = {
    "fastapi": dict.fromkeys(READS, 5.0),
    "litestar": dict.fromkeys(READS, 1.2),
    FASTIFY: dict.fromkeys(READS, 0.9),
    EQUAL_FASTAPI: dict.fromkeys(WRITES, 2.5),
}
# µs CPU of a request with a credential beyond those of a request without.
MAX_CREDENTIAL_CPU_US = 80

Results = Mapping[tuple[str, str], Measurement]
"""Medians by the names of competitor and column."""


class Verdict(NamedTuple):
    figure: float
    goal: float
    is_missed: bool

    def __str__(self) -> str:
        return f"{self.figure:.2f} ({self.goal:g} {'missed' if self.is_missed else 'kept'})"


def print_report(results: Results, names: Sequence[str], columns: Sequence[str], books: str) -> int:
    """Returns the number of missed goals; `books` describes the size of the databases."""
    console = Console(width=330, highlight=False)
    titles = {name: COMPETITORS[name].title for name in names}
    for heading, cells in (
        (f"Requests/s, as multiples of {titles[names[0]]}; {books}", format_ratios(results, names[0])),
        ("Requests/s · µs CPU a request = service + worker + PostgreSQL", format_throughput(results)),
        ("p50 / p99 in ms", format_latencies(results)),
    ):
        console.print(f"\n{heading}", build_table(cells, titles, columns), sep="\n")
    limits, missed_goals = list_limits(results), 0
    for library in LIBRARIES:
        if verdicts := list_verdicts(results, library):
            goals = {name: f"{titles[library]} : {titles[name]}" for name, _ in verdicts}
            console.print("\nRequests/s", build_table(verdicts, goals, columns), sep="\n")
            missed_goals += sum(verdict.is_missed for verdict in verdicts.values())
    for title, verdict in limits.items():
        console.print(f"{title}: {verdict}")
    return missed_goals + sum(limit.is_missed for limit in limits.values())


def build_table(cells: Mapping[tuple[str, str], Any], titles: Mapping[str, str], columns: Iterable[str]) -> Table:
    """`cells` has texts by a key of `titles`, which head the table, and the name of the column that was measured."""
    table = Table("", *titles.values(), box=box.MARKDOWN)
    for column in columns:
        table.add_row(COLUMNS[column], *(str(cells.get((name, column), "·")) for name in titles))
    return table


def format_ratios(results: Results, reference: str) -> dict[tuple[str, str], str]:
    return {
        (name, column): f"{measurement.per_second / results[reference, column].per_second:.2f}"
        for (name, column), measurement in results.items()
        if (reference, column) in results
    }


def format_throughput(results: Results) -> dict[tuple[str, str], str]:
    return {
        cell: f"{row.per_second:,.0f} · {row.cpu_us:,.0f} = "
        f"{row.server_us:,.0f} + {row.worker_us:,.0f} + {row.postgresql_us:,.0f}"
        for cell, row in results.items()
    }


def format_latencies(results: Results) -> dict[tuple[str, str], str]:
    return {cell: f"{measurement.p50_ms:.1f} / {measurement.p99_ms:.1f}" for cell, measurement in results.items()}


def list_verdicts(results: Results, library: str) -> dict[tuple[str, str], Verdict]:
    """Verdicts by the names of peers and columns. Whatever did not take part has none."""
    verdicts = {}
    for name, goals in GOALS.items():
        for column, goal in goals.items():
            if {(library, column), (name, column)} <= results.keys():
                factor = results[library, column].per_second / results[name, column].per_second
                verdicts[name, column] = Verdict(factor, goal, factor < goal)
    return verdicts


def list_limits(results: Results) -> dict[str, Verdict]:
    """What a credential costs a request of ours, by titles."""
    cpu_us = {column: measurement.cpu_us for (name, column), measurement in results.items() if name == OURS}
    figures = {
        f"{COLUMNS[column]}, µs CPU beyond none": (cpu_us[column] - cpu_us["get"], MAX_CREDENTIAL_CPU_US)
        for column in sorted(CREDENTIAL_COLUMNS & cpu_us.keys())
        if "get" in cpu_us
    }
    return {title: Verdict(figure, limit, figure > limit) for title, (figure, limit) in figures.items()}
