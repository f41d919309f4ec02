"""The tables: competitors down, columns across."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.competitors import COMPETITORS, OURS
from benchmarks.load import COLUMNS, Measurement

FASTAPI = {"fastapi-sync", "fastapi-async"}

Results = Mapping[tuple[str, str], Measurement]
"""Medians, by the names of competitor and column."""


def show(results: Results, names: Sequence[str], columns: Sequence[str], books: int) -> None:
    console = Console(width=120)
    for title, cell in (
        (f"Requests/s beside {COMPETITORS[names[0]].title}; {books:,} books", ratio),
        ("Requests/s, and below them p50 / p99 in ms", throughput),
        ("µs CPU a request, server and PostgreSQL", cpu),
    ):
        console.print(f"\n{title}", table(cell, results, names, columns), sep="\n")
    if OURS in names and FASTAPI & set(names):
        console.print(beside_fastapi(results, FASTAPI & set(names), columns))


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


def beside_fastapi(results: Results, fastapi: set[str], columns: Sequence[str]) -> str:
    def times(column: str) -> float:
        return results[OURS, column].per_second / max(results[name, column].per_second for name in fastapi)

    ratios = ", ".join(f"{COLUMNS[column]} {times(column):.2f}" for column in columns)
    return f"Ours beside the better FastAPI: {ratios}"
