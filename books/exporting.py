"""All books as CSV, one by one."""

import csv
from collections.abc import Iterable, Iterator
from typing import TextIO

from books.compiled import Representation
from books.models import Book
from books.serializers import BookSerializer
from books.spreadsheets import shown

MEMBERS = Representation(BookSerializer)


def rows() -> Iterator[tuple[object, ...]]:
    """Every book's members, by id, never all in memory."""
    return MEMBERS.select(Book.objects.order_by("pk")).iterator(chunk_size=2_000)


def write(file: TextIO, books: Iterable[tuple[object, ...]]) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(MEMBERS.members)
    writer.writerows([cell(value) for value in book] for book in books)


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return shown(value) if isinstance(value, str) else str(value)
