"""The tables, competitors down and columns across, and the goals below them."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.competitors import COMPETITORS, OURS
from benchmarks.goal import GOALS, Goal
from benchmarks.load import COLUMNS, Measurement

Results = Mapping[tuple[str, str], Measurement]
"""Medians, by the names of competitor and column."""


class Verdict(NamedTuple):
    column: str
    reached: float
    goal: float

    @property
    def missed(self) -> bool:
        return self.reached < self.goal

    def __str__(self) -> str:
        return f"{COLUMNS[self.column]} {self.reached:.2f} ({self.goal} {'missed' if self.missed else 'kept'})"


def show(results: Results, names: Sequence[str], columns: Sequence[str], books: str) -> int:
    """Answers how many goals are missed; `books` says how many there are."""
    console = Console(width=130)
    for title, cell in (
        (f"Requests/s beside {COMPETITORS[names[0]].title}; {books}", ratio),
        ("Requests/s, and below them p50 / p99 in ms", throughput),
        ("µs CPU a request, server and PostgreSQL", cpu),
    ):
        console.print(f"\n{title}", table(cell, results, names, columns), sep="\n")
    missed = 0
    for goal in GOALS:
        if verdicts := compared(results, goal, names, columns):
            console.print(f"Ours beside {goal.title}: {', '.join(map(str, verdicts))}", highlight=False)
            missed += sum(verdict.missed for verdict in verdicts)
    return missed


def table(
    cell: Callable[[Measurement, Measurement], str],
    results: Results,
    names: Sequence[str],
    columns: Sequence[str],
) -> Table:
    """`cell` words a measurement, given that of the first competitor too."""
    made = Table("", *(COLUMNS[column] for column in columns))
    for name in names:
        cells = (cell(results[name, column], results[names[0], column]) for column in columns)
        made.add_row(COMPETITORS[name].title, *cells)
    return made


def ratio(measured: Measurement, first: Measurement) -> str:
    return f"{measured.per_second / first.per_second:.2f}"


def throughput(measured: Measurement, _first: Measurement) -> str:
    return f"{measured.per_second:,.0f}\n{measured.p50_ms:.1f} / {measured.p99_ms:.1f}"


def cpu(measured: Measurement, _first: Measurement) -> str:
    return f"{measured.cpu_us:,.0f}"


def compared(results: Results, goal: Goal, names: Sequence[str], columns: Sequence[str]) -> list[Verdict]:
    """Nothing where we, or all of those peers, took no part."""
    peers = goal.peers & set(names)
    if OURS not in names or not peers:
        return []

    def reached(column: str) -> float:
        return results[OURS, column].per_second / max(results[name, column].per_second for name in peers)

    return [Verdict(column, reached(column), goal.times[column]) for column in columns]
