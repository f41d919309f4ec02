"""Prints the tables, with a row for each competitor, and the goals below them."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.competitors import COMPETITORS, OURS
from benchmarks.goal import GOALS, Goal
from benchmarks.support.load import COLUMNS, Measurement

Results = Mapping[tuple[str, str], Measurement]
"""Medians by the names of competitor and column."""


class Verdict(NamedTuple):
    column: str
    factor: float
    goal: float

    @property
    def is_missed(self) -> bool:
        return self.factor < self.goal

    def __str__(self) -> str:
        return f"{COLUMNS[self.column]} {self.factor:.2f} ({self.goal} {'missed' if self.is_missed else 'kept'})"


def print_report(results: Results, names: Sequence[str], columns: Sequence[str], books: str) -> int:
    """Returns the number of missed goals; `books` describes the size of the databases."""
    console = Console(width=130)
    for title, format_cell in (
        (f"Requests/s beside {COMPETITORS[names[0]].title}; {books}", format_ratio),
        ("Requests/s, and below them p50 / p99 in ms", format_throughput),
        ("µs CPU a request, server and PostgreSQL", format_cpu),
    ):
        console.print(f"\n{title}", build_table(format_cell, results, names, columns), sep="\n")
    missed_goals = 0
    for goal in GOALS:
        if verdicts := compare_with_goal(results, goal, names, columns):
            console.print(f"Ours beside {goal.title}: {', '.join(map(str, verdicts))}", highlight=False)
            missed_goals += sum(verdict.is_missed for verdict in verdicts)
    return missed_goals


def build_table(
    format_cell: Callable[[Measurement, Measurement], str],
    results: Results,
    names: Sequence[str],
    columns: Sequence[str],
) -> Table:
    """`format_cell` gets a measurement, and that of the first competitor in the same column."""
    table = Table("", *(COLUMNS[column] for column in columns))
    for name in names:
        cells = (format_cell(results[name, column], results[names[0], column]) for column in columns)
        table.add_row(COMPETITORS[name].title, *cells)
    return table


def format_ratio(measurement: Measurement, reference: Measurement) -> str:
    return f"{measurement.per_second / reference.per_second:.2f}"


def format_throughput(measurement: Measurement, _reference: Measurement) -> str:
    return f"{measurement.per_second:,.0f}\n{measurement.p50_ms:.1f} / {measurement.p99_ms:.1f}"


def format_cpu(measurement: Measurement, _reference: Measurement) -> str:
    return f"{measurement.cpu_us:,.0f}"


def compare_with_goal(results: Results, goal: Goal, names: Sequence[str], columns: Sequence[str]) -> list[Verdict]:
    """No verdicts if our service, or each of these peers, did not take part."""
    peers = goal.peers & set(names)
    if OURS not in names or not peers:
        return []

    def compute_factor(column: str) -> float:
        return results[OURS, column].per_second / max(results[name, column].per_second for name in peers)

    return [Verdict(column, compute_factor(column), goal.factors[column]) for column in columns]
