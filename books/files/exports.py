"""Reads books page by page, for files of any size."""

from collections.abc import Iterator
from itertools import starmap

from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable

from books.fields import FormattedTimestamp
from books.files.formats.records import ExportedBook
from books.models import Book

# Books of a page, each of which is a query: neither a transaction nor a cursor stays open while a client reads slowly.
PAGE_BOOKS = 5_000
# The first page costs little, since the file can be refused after it.
FIRST_PAGE_BOOKS = 100
TIMES = ("created_at", "updated_at")
PAGE_COLUMNS: list[Combinable] = [
    FormattedTimestamp(name, "Z") if name in TIMES else F(name) for name in ExportedBook.__struct_fields__
]


def iter_pages(books: QuerySet[Book]) -> Iterator[list[ExportedBook]]:
    """Yields the books in the order of their ids. The last page, which alone may be empty, is read with the others."""
    last, size = None, FIRST_PAGE_BOOKS
    while True:
        page = read_exported_page(books, last, size)
        yield page
        if len(page) < size:
            return
        last, size = page[-1].id, PAGE_BOOKS


def read_exported_page(books: QuerySet[Book], last: int | None, size: int) -> list[ExportedBook]:
    """Returns as many of the books behind this id, or all that there are."""
    rest = books if last is None else books.filter(pk__gt=last)
    return list(starmap(ExportedBook, rest.order_by("pk").values_list(*PAGE_COLUMNS)[:size]))


def begin_pages(books: QuerySet[Book]) -> Iterator[list[ExportedBook]]:
    """Returns the pages after the first one is read: what fails then can still be answered."""
    pages = iter_pages(books)
    first_page = next(pages)

    def chain() -> Iterator[list[ExportedBook]]:
        yield first_page
        yield from pages

    return chain()
