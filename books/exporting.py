"""All books as CSV, one by one."""

import csv
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from books.compiled import Representation
from books.models import Book
from books.serializers import BookSerializer
from books.spreadsheets import escaped

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

REPRESENTATION = Representation(BookSerializer)


def rows() -> Generator[tuple[object, ...]]:
    """Every book's members, by id, never all in memory."""
    yield from REPRESENTATION.select(Book.objects.order_by("pk")).iterator(chunk_size=2_000)


def write(file: "SupportsWrite[str]", books: Iterable[tuple[object, ...]]) -> None:
    # Lines end with CR and LF (RFC 4180), so that either inside a cell is quoted.
    writer = csv.writer(file)
    writer.writerow(REPRESENTATION.members)
    writer.writerows([cell(value) for value in book] for book in books)


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return escaped(value) if isinstance(value, str) else str(value)
