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
from books.exchange.csv_cells import unescape_formula
from books.exchange.progress import iter_batches
from books.serializers import NewBookSerializer
from library_site.db.integers import parse_integer

REQUIRED_COLUMNS = NewBookSerializer.Meta.fields
AVAILABLE_VALUES = {"true": True, "false": False, "": True}
# What a file of failed rows has before their own columns.
REPORT_COLUMNS = ["line", "reason"]
IMPORT_BATCH = 1_000
serializer = NewBookSerializer()


class UnreadableFile(Exception):
    """The file is no CSV of books; the text says where and why."""


class ParsedRow(NamedTuple):
    """What a row says of a book, with its cells and the line it begins on."""

    line: int
    cells: list[str]
    values: dict[str, Any]


class FailedRow(NamedTuple):
    columns: list[str]
    line: int
    cells: list[str]
    reason: str


ReportFailure = Callable[[FailedRow], None]


def import_books(lines: Iterable[str], report: ReportFailure, now: datetime, dry_run: bool) -> int:
    """Adds the books of the CSV and reports every row that failed; answers how many were added.

    Raises UnreadableFile, ChangedMeanwhile; nothing is added then.
    All rows are checked before the transaction begins, so that no one waits for more than the writing.
    """
    columns, table = read_csv(lines)
    with tempfile.TemporaryFile("w+", encoding="ascii") as checked:
        for row in iter_valid_rows(columns, table, report):
            checked.write(f"{json.dumps(row)}\n")
        checked.seek(0)
        stored = (ParsedRow(*json.loads(line)) for line in checked)
        with transaction.atomic():
            added = sum(
                import_batch(batch, columns, report, now)
                for batch in iter_batches(stored, IMPORT_BATCH, "Importing books")
            )
            transaction.set_rollback(dry_run)
    return added


def read_csv(lines: Iterable[str]) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The columns, and each row's cells with the line it begins on. Raises UnreadableFile, also while rows are read."""
    # Strict: a quote that is never closed would take the rest of the file into its cell.
    numbered = cells_by_line(csv.reader(lines, strict=True))
    _, columns = next(numbered, (1, []))
    reported = len(REPORT_COLUMNS) if columns[: len(REPORT_COLUMNS)] == REPORT_COLUMNS else 0
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
    if missing := [name for name in REQUIRED_COLUMNS if name not in names]:
        raise UnreadableFile(f"The first line names no column {', '.join(missing)}.")


def iter_valid_rows(
    columns: list[str], table: Iterable[tuple[int, list[str]]], report: ReportFailure
) -> Iterator[ParsedRow]:
    """The rows that are right."""
    for line, cells in table:
        try:
            yield ParsedRow(line, cells, parse_book(columns, cells))
        except ValidationError as error:
            report(FailedRow(columns, line, cells, format_errors(error)))


def parse_book(columns: list[str], cells: list[str]) -> dict[str, Any]:
    """What the cells say of a book, by the rules of a creation. Raises ValidationError."""
    if len(cells) != len(columns):
        raise ValidationError({"row": [f"It has {len(cells)} cells, and the first line {len(columns)}."]})
    texts = {name: unescape_formula(cell) for name, cell in zip(columns, cells, strict=True)}
    available = texts.get("available", "").strip().lower()
    if available not in AVAILABLE_VALUES:
        raise ValidationError({"available": ["It is neither true nor false."]})
    values: dict[str, Any] = serializer.run_validation({**texts, "year": parse_integer(texts["year"].strip())})
    return {**values, "available": AVAILABLE_VALUES[available]}


def format_errors(error: ValidationError) -> str:
    problems = cast("dict[str, list[str]]", error.detail)
    return " ".join(f"{name}: {words}" for name, found in problems.items() for words in found)


def import_batch(batch: list[ParsedRow], columns: list[str], report: ReportFailure, now: datetime) -> int:
    """Adds the books of these rows but those whose isbn is in use; answers how many were added."""
    first: dict[str, ParsedRow] = {}
    for row in batch:
        first.setdefault(row.values["isbn"], row)
    written = changes.add_books([row.values for row in first.values()], now)
    for row in batch:
        earlier = first[row.values["isbn"]]
        if row.values["isbn"] not in written:
            report(FailedRow(columns, row.line, row.cells, "isbn: Another book has it."))
        elif row is not earlier:
            report(FailedRow(columns, row.line, row.cells, f"isbn: The book on line {earlier.line} has it."))
    return len(written)
