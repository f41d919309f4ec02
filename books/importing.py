"""Books from CSV: what is right is added in one transaction, what is wrong is written down with its line and reason."""

import csv
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, cast

import msgspec
from django.db import transaction
from rest_framework.exceptions import ValidationError

from books import changes
from books.integers import integer
from books.progress import batches
from books.serializers import BookCreateSerializer
from books.spreadsheets import unescaped

REQUIRED = BookCreateSerializer.Meta.fields
BATCH = 1_000
serializer = BookCreateSerializer()
AVAILABLE = {"true": True, "false": False, "": True}


class UnreadableFile(Exception):
    """The file is no CSV of books; the text says where and why."""


class Row(msgspec.Struct):
    """A line of the file: its cells by column, and what they say of a book."""

    line: int
    cells: dict[str, str]
    values: dict[str, Any]


class Failure(NamedTuple):
    line: int
    cells: dict[str, str]
    reason: str


Report = Callable[[Failure], None]


def import_books(lines: Iterable[str], report: Report, now: datetime, dry_run: bool) -> int:
    """Adds the books of the CSV and reports every row that failed; answers how many were added.

    Raises UnreadableFile, ChangedMeanwhile; nothing is added then.
    All rows are checked before the transaction begins, so that no one waits for more than the writing.
    """
    with tempfile.TemporaryFile() as checked:
        for row in rows(lines, report):
            checked.write(msgspec.json.encode(row) + b"\n")
        checked.seek(0)
        with transaction.atomic():
            added = sum(write(batch, report, now) for batch in batches(stored(checked), BATCH, "Importing books"))
            transaction.set_rollback(dry_run)
    return added


def rows(lines: Iterable[str], report: Report) -> Iterator[Row]:
    reader = csv.DictReader(lines, restkey="", restval=None)
    try:
        require_columns(reader.fieldnames or [])
        for cells in reader:
            try:
                yield Row(reader.line_num, cells, book(cells))
            except ValidationError as error:
                report(Failure(reader.line_num, cells, reason(error)))
    except csv.Error as error:
        raise UnreadableFile(f"Line {reader.line_num}: {error}.") from error


def require_columns(names: Sequence[str]) -> None:
    if "" in names or len(names) != len(set(names)):
        raise UnreadableFile("The first line has a column without a name, or one twice.")
    if missing := [name for name in REQUIRED if name not in names]:
        raise UnreadableFile(f"The first line names no column {', '.join(missing)}.")


def book(cells: dict[str, Any]) -> dict[str, Any]:
    """What the cells say of a book, by the rules of a creation. Raises ValidationError."""
    if "" in cells or None in cells.values():
        raise ValidationError({"row": ["It has more or fewer cells than the first line."]})
    texts = {name: unescaped(cells[name]) for name in (*REQUIRED, "available") if name in cells}
    available = texts.pop("available", "").strip().lower()
    if available not in AVAILABLE:
        raise ValidationError({"available": ["It is neither true nor false."]})
    values: dict[str, Any] = serializer.run_validation({**texts, "year": integer(texts["year"].strip())})
    return {**values, "available": AVAILABLE[available]}


def reason(error: ValidationError) -> str:
    problems = cast("dict[str, list[str]]", error.detail)
    return " ".join(f"{name}: {words}" for name, found in problems.items() for words in found)


def stored(checked: BinaryIO) -> Iterator[Row]:
    decoder = msgspec.json.Decoder(Row)
    return (decoder.decode(line) for line in checked)


def write(batch: list[Row], report: Report, now: datetime) -> int:
    """Adds the books of these rows but those whose isbn is in use; answers how many were added."""
    first: dict[str, Row] = {}
    for row in batch:
        earlier = first.setdefault(row.values["isbn"], row)
        if earlier is not row:
            report(Failure(row.line, row.cells, f"isbn: The book on line {earlier.line} has it."))
    written = changes.add_many([row.values for row in first.values()], now)
    for isbn, row in first.items():
        if isbn not in written:
            report(Failure(row.line, row.cells, "isbn: Another book has it."))
    return len(written)
