"""Exports books page by page, for files of any size, and sends files."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from itertools import chain, starmap

from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.http import StreamingHttpResponse
from django.utils.text import slugify

from books.fields import FormattedTimestamp
from books.files.formats.records import ExportedBook
from books.files.formats.registry import Format
from books.models import Book
from library_site.db.keyset import ID_ORDER, Start

# The number of books in a page. Each page is a query, so a slow client keeps no transaction or cursor open.
PAGE_BOOKS = 5_000
# The first page is small, because the request may still be rejected after it is read.
FIRST_PAGE_BOOKS = 100
MAX_FILTER_NAME = 60
# They follow from others, or select nothing.
UNNAMED_FILTERS = ("added_from", "sort", "today")
TIMES = ("created_at", "updated_at")
PAGE_COLUMNS: list[Combinable] = [
    FormattedTimestamp(name, "Z") if name in TIMES else F(name) for name in ExportedBook.__struct_fields__
]


def iter_pages(books: QuerySet[Book]) -> Iterator[list[ExportedBook]]:
    """Yields pages of books, sorted by id. Only the last page may be empty."""
    start, size = Start(), FIRST_PAGE_BOOKS
    while True:
        rows = ID_ORDER.sort(books, start, descending=False).values_list(*PAGE_COLUMNS)[:size]
        page = list(starmap(ExportedBook, rows))
        yield page
        if len(page) < size:
            return
        start, size = Start((page[-1].id,)), PAGE_BOOKS


def build_file_name(filters: Mapping[str, str], day: date) -> str:
    """Returns the name of a file without its extension: the texts of the filters, and the day."""
    texts = slugify(" ".join(text for name, text in filters.items() if name not in UNNAMED_FILTERS))[:MAX_FILTER_NAME]
    return "-".join(filter(None, ["books", texts.strip("-"), day.isoformat()]))


def stream_books(books: QuerySet[Book], format: Format, name: str = "books") -> StreamingHttpResponse:
    """Returns a response with these books, page by page. The format must be one that can be streamed."""
    pages = iter_pages(books)
    # An error in the first page can still become an error response.
    all_pages = chain([next(pages)], pages)
    return stream_file(format.write(all_pages) if format.write else (), format, name)


def stream_file(pieces: Iterable[bytes], format: Format, name: str) -> StreamingHttpResponse:
    """Returns a file response. The extension of the format is added to the name."""
    headers = {
        "Content-Type": format.content_type,
        "Content-Disposition": f'attachment; filename="{name}{format.extension}"',
    }
    return StreamingHttpResponse(pieces, headers=headers)
