"""Writes all books as CSV."""

import csv
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING

from django.db.models import F
from django.db.models.expressions import Combinable

from books.exchange.csv_cells import escape_formula
from books.fields import FormattedTimestamp
from books.models import Book

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

EXPORTED_COLUMNS: dict[str, Combinable] = {
    **{name: F(name) for name in ("id", "title", "author", "year", "isbn", "genre", "available")},
    "created_at": FormattedTimestamp("created_at"),
}


def iter_rows() -> Generator[tuple[object, ...]]:
    """Yields the members of each book in the order of the ids. The books are never all in memory."""
    yield from Book.objects.order_by("pk").values_list(*EXPORTED_COLUMNS.values()).iterator(chunk_size=2_000)


def write_csv(file: "SupportsWrite[str]", books: Iterable[tuple[object, ...]]) -> None:
    # Lines end with CR LF (RFC 4180), so the writer quotes cells that contain CR or LF.
    writer = csv.writer(file)
    writer.writerow(EXPORTED_COLUMNS)
    writer.writerows([format_cell(value) for value in book] for book in books)


def format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return escape_formula(value) if isinstance(value, str) else str(value)
