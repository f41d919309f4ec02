"""All books as CSV, one by one."""

import csv
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from django.db.models import F
from django.db.models.expressions import Combinable

from books.exchange.csv_cells import escaped
from books.fields import WireTime
from books.models import Book

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COLUMNS: dict[str, Combinable] = {
    **{name: F(name) for name in ("id", "title", "author", "year", "isbn", "genre", "available")},
    "created_at": WireTime("created_at"),
}


def rows() -> Generator[tuple[object, ...]]:
    """Every book's members, by id, never all in memory."""
    yield from Book.objects.order_by("pk").values_list(*COLUMNS.values()).iterator(chunk_size=2_000)


def write(file: "SupportsWrite[str]", books: Iterable[tuple[object, ...]]) -> None:
    # Lines end with CR and LF (RFC 4180), so that either inside a cell is quoted.
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    writer.writerows([cell(value) for value in book] for book in books)


def cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return escaped(value) if isinstance(value, str) else str(value)
