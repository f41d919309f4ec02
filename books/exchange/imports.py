"""Books from CSV: what is right is added in one transaction, what is wrong is written down with its line and reason."""

import csv
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from django.db import transaction
from rest_framework.exceptions import ValidationError

from books import changes
from books.exchange.csv_cells import unescaped
from books.exchange.progress import batches
from books.serializers import NewBookSerializer
from library_site.db.integers import integer

REQUIRED = NewBookSerializer.Meta.fields
AVAILABLE = {"true": True, "false": False, "": True}
# What a file of failed rows has before their own columns.
REPORTED = ["line", "reason"]
BATCH = 1_000
serializer = NewBookSerializer()


class UnreadableFile(Exception):
    """The file is no CSV of books; the text says where and why."""


class Row(NamedTuple):
    """What a row says of a book, with its cells and the line it begins on."""

    line: int
    cells: list[str]
    values: dict[str, Any]


class Failure(NamedTuple):
    columns: list[str]
    line: int
    cells: list[str]
    reason: str


Report = Callable[[Failure], None]


def import_books(lines: Iterable[str], report: Report, now: datetime, dry_run: bool) -> int:
    """Adds the books of the CSV and reports every row that failed; answers how many were added.

    Raises UnreadableFile, ChangedMeanwhile; nothing is added then.
    All rows are checked before the transaction begins, so that no one waits for more than the writing.
    """
    columns, table = read(lines)
    with tempfile.TemporaryFile("w+", encoding="ascii") as checked:
        for row in rows(columns, table, report):
            checked.write(f"{json.dumps(row)}\n")
        checked.seek(0)
        stored = (Row(*json.loads(line)) for line in checked)
        with transaction.atomic():
            added = sum(write(batch, columns, report, now) for batch in batches(stored, BATCH, "Importing books"))
            transaction.set_rollback(dry_run)
    return added


def read(lines: Iterable[str]) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The columns, and each row's cells with the line it begins on. Raises UnreadableFile, also while rows are read."""
    # Strict: a quote that is never closed would take the rest of the file into its cell.
    numbered = cells_by_line(csv.reader(lines, strict=True))
    _, columns = next(numbered, (1, []))
    reported = len(REPORTED) if columns[: len(REPORTED)] == REPORTED else 0
    require_columns(columns[reported:])
    return columns[reported:], ((line, cells[reported:]) for line, cells in numbered)


def cells_by_line(reader: Any) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableFile(f"Line {line}: {error}.") from error


def require_columns(names: Sequence[str]) -> None:
    if "" in names or len(names) != len(set(names)):
        raise UnreadableFile("The first line has a column without a name, or one twice.")
    if missing := [name for name in REQUIRED if name not in names]:
        raise UnreadableFile(f"The first line names no column {', '.join(missing)}.")


def rows(columns: list[str], table: Iterable[tuple[int, list[str]]], report: Report) -> Iterator[Row]:
    """The rows that are right."""
    for line, cells in table:
        try:
            yield Row(line, cells, book(columns, cells))
        except ValidationError as error:
            report(Failure(columns, line, cells, reason(error)))


def book(columns: list[str], cells: list[str]) -> dict[str, Any]:
    """What the cells say of a book, by the rules of a creation. Raises ValidationError."""
    if len(cells) != len(columns):
        raise ValidationError({"row": [f"It has {len(cells)} cells, and the first line {len(columns)}."]})
    texts = {name: unescaped(cell) for name, cell in zip(columns, cells, strict=True)}
    available = texts.get("available", "").strip().lower()
    if available not in AVAILABLE:
        raise ValidationError({"available": ["It is neither true nor false."]})
    values: dict[str, Any] = serializer.run_validation({**texts, "year": integer(texts["year"].strip())})
    return {**values, "available": AVAILABLE[available]}


def reason(error: ValidationError) -> str:
    problems = cast("dict[str, list[str]]", error.detail)
    return " ".join(f"{name}: {words}" for name, found in problems.items() for words in found)


def write(batch: list[Row], columns: list[str], report: Report, now: datetime) -> int:
    """Adds the books of these rows but those whose isbn is in use; answers how many were added."""
    first: dict[str, Row] = {}
    for row in batch:
        first.setdefault(row.values["isbn"], row)
    written = changes.add_many([row.values for row in first.values()], now)
    for row in batch:
        earlier = first[row.values["isbn"]]
        if row.values["isbn"] not in written:
            report(Failure(columns, row.line, row.cells, "isbn: Another book has it."))
        elif row is not earlier:
            report(Failure(columns, row.line, row.cells, f"isbn: The book on line {earlier.line} has it."))
    return len(written)
