"""Responses with files of books."""

from collections.abc import Iterable

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from books.files.exports import begin_pages
from books.files.formats.registry import Format
from books.models import Book


def stream_books(books: QuerySet[Book], format: Format) -> StreamingHttpResponse:
    """Returns a response with these books, page by page. The format must be one that can be streamed."""
    pages = begin_pages(books)
    return stream_file(format.write(pages) if format.write else (), format, "books")


def stream_file(pieces: Iterable[bytes], format: Format, name: str) -> StreamingHttpResponse:
    """Returns a file response. The extension of the format is added to the name."""
    headers = {
        "Content-Type": format.content_type,
        "Content-Disposition": f'attachment; filename="{name}{format.extension}"',
    }
    return StreamingHttpResponse(pieces, headers=headers)
