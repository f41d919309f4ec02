"""Adds the books of a CSV file in one transaction, and reports each row that fails with its line and the reason."""

import csv
import json
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from django.db import models, transaction
from rest_framework.exceptions import ValidationError

from books import changes
from books.exchange.csv_cells import unescape_formula
from books.exchange.progress import iter_batches
from books.history.actors import ActorRef, begin_operation
from books.serializers import NewBookSerializer
from library_site.api.serializers import NonBlankField
from library_site.db.integers import parse_integer


class ImportedBookSerializer(NewBookSerializer):
    """Refuses blank texts, as version 2 and the admin do."""

    serializer_field_mapping = {**NewBookSerializer.serializer_field_mapping, models.CharField: NonBlankField}


REQUIRED_COLUMNS = NewBookSerializer.Meta.fields
AVAILABLE_VALUES = {"true": True, "false": False, "": True}
# A file of failed rows begins with these columns.
REPORT_COLUMNS = ["line", "reason"]
IMPORT_BATCH = 1_000
# The kind of the operation that all changes of an import belong to.
IMPORT = "import"
book_serializer = ImportedBookSerializer()


class UnreadableFile(Exception):
    """The file is not a CSV of books; the message says where and why."""


class ParsedRow(NamedTuple):
    """The values of a book, or the reason why there are none; its cells, and the line on which the row begins."""

    line: int
    cells: list[str]
    values: dict[str, Any]
    reason: str = ""


class FailedRow(NamedTuple):
    columns: list[str]
    line: int
    cells: list[str]
    reason: str


ReportFailure = Callable[[FailedRow], None]


def import_books(lines: Iterable[str], report: ReportFailure, actor: ActorRef, now: datetime, dry_run: bool) -> int:
    """Adds the books of the CSV and reports each row that fails, in order. Returns the number of books that were added.

    Raises UnreadableFile, ConcurrentChange; then no book is added. All rows are checked before the transaction begins,
    so that other requests wait only while the books are written.
    """
    columns, table = read_csv(lines)
    with tempfile.TemporaryFile("w+", encoding="ascii") as file:
        for row in parse_rows(columns, table):
            file.write(f"{json.dumps(row)}\n")
        file.seek(0)
        rows = (ParsedRow(*json.loads(line)) for line in file)
        with transaction.atomic():
            actor = begin_operation(IMPORT, actor, now)
            added_count = sum(
                import_batch(batch, columns, report, actor, now)
                for batch in iter_batches(rows, IMPORT_BATCH, "Importing books")
            )
            transaction.set_rollback(dry_run)
    return added_count


def read_csv(lines: Iterable[str]) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Returns the columns, and an iterator of the line and the cells of each row. Both raise UnreadableFile.

    The cells are without the escapes of `csv_cells`.
    """
    # Strict: otherwise a quote that is never closed would make the rest of the file one cell.
    rows = iter_numbered_rows(csv.reader(lines, strict=True))
    _, columns = next(rows, (1, []))
    start = len(REPORT_COLUMNS) if columns[: len(REPORT_COLUMNS)] == REPORT_COLUMNS else 0
    require_columns(columns[start:])
    return columns[start:], ((line, cells[start:]) for line, cells in rows)


def iter_numbered_rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, [unescape_formula(cell) for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableFile(f"Line {line}: {error}.") from error


def require_columns(names: Sequence[str]) -> None:
    if "" in names or len(names) != len(set(names)):
        raise UnreadableFile("The first line has a column without a name, or one twice.")
    if missing := [name for name in REQUIRED_COLUMNS if name not in names]:
        raise UnreadableFile(f"The first line names no column {', '.join(missing)}.")


def parse_rows(columns: list[str], table: Iterable[tuple[int, list[str]]]) -> Iterator[ParsedRow]:
    for line, cells in table:
        try:
            yield ParsedRow(line, cells, parse_book(columns, cells))
        except ValidationError as error:
            yield ParsedRow(line, cells, {}, format_errors(error))


def parse_book(columns: list[str], cells: list[str]) -> dict[str, Any]:
    """Returns the values of a new book. Raises ValidationError."""
    if len(cells) != len(columns):
        raise ValidationError({"row": [f"It has {len(cells)} cells, and the first line {len(columns)}."]})
    texts = dict(zip(columns, cells, strict=True))
    available = texts.get("available", "").strip().lower()
    if available not in AVAILABLE_VALUES:
        raise ValidationError({"available": ["It is neither true nor false."]})
    values: dict[str, Any] = book_serializer.run_validation({**texts, "year": parse_integer(texts["year"].strip())})
    return {**values, "available": AVAILABLE_VALUES[available]}


def format_errors(error: ValidationError) -> str:
    problems = cast("dict[str, list[str]]", error.detail)
    return " ".join(f"{name}: {message}" for name, messages in problems.items() for message in messages)


def import_batch(
    batch: list[ParsedRow], columns: list[str], report: ReportFailure, actor: ActorRef, now: datetime
) -> int:
    """Adds the books of these rows, except those whose isbn is in use. Returns the number of books that were added."""
    first_rows: dict[str, ParsedRow] = {}
    for row in batch:
        if not row.reason:
            first_rows.setdefault(row.values["isbn"], row)
    new_isbns = changes.add_books([row.values for row in first_rows.values()], actor, now)
    for row in batch:
        if reason := row.reason or find_conflict(row, first_rows[row.values["isbn"]], new_isbns):
            report(FailedRow(columns, row.line, row.cells, reason))
    return len(new_isbns)


def find_conflict(row: ParsedRow, first_row: ParsedRow, new_isbns: Container[str]) -> str:
    """Returns the reason why this row became no book, or "". `first_row` is the first one with its isbn."""
    if row.values["isbn"] not in new_isbns:
        return "isbn: Another book has it."
    return "" if row is first_row else f"isbn: The book on line {first_row.line} has it."
