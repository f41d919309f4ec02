"""Reads books page by page, for files of any size."""

from collections.abc import Iterator
from itertools import starmap

from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable

from books.fields import FormattedTimestamp
from books.files.formats.records import ExportedBook
from books.models import Book

# The number of books in a page. Each page is a query, so a slow client keeps no transaction or cursor open.
PAGE_BOOKS = 5_000
# The first page is small, because the request may still be rejected after it is read.
FIRST_PAGE_BOOKS = 100
TIMES = ("created_at", "updated_at")
PAGE_COLUMNS: list[Combinable] = [
    FormattedTimestamp(name, "Z") if name in TIMES else F(name) for name in ExportedBook.__struct_fields__
]


def iter_pages(books: QuerySet[Book]) -> Iterator[list[ExportedBook]]:
    """Yields pages of books, sorted by id. Only the last page may be empty."""
    last, size = None, FIRST_PAGE_BOOKS
    while True:
        page = read_exported_page(books, last, size)
        yield page
        if len(page) < size:
            return
        last, size = page[-1].id, PAGE_BOOKS


def read_exported_page(books: QuerySet[Book], last: int | None, size: int) -> list[ExportedBook]:
    """Returns the next books after this id."""
    rest = books if last is None else books.filter(pk__gt=last)
    return list(starmap(ExportedBook, rest.order_by("pk").values_list(*PAGE_COLUMNS)[:size]))


def begin_pages(books: QuerySet[Book]) -> Iterator[list[ExportedBook]]:
    """Reads the first page, then returns all pages. An error in the first page can still become an error response."""
    pages = iter_pages(books)
    first_page = next(pages)

    def chain() -> Iterator[list[ExportedBook]]:
        yield first_page
        yield from pages

    return chain()
