"""The ids of books in URLs, and the URLs of books in errors."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from books.models import Book, Change
from books.writing.changes import BookNotFound, IsbnInUse
from library_site.api.query import INVALID_INTEGER
from library_site.db.integers import parse_integer
from library_site.http.api_errors import ErrorContent, FieldError


def parse_book_id(text: str, find_other_errors: Callable[[], Any] = dict) -> int:
    """Parses an id: ASCII digits with an optional minus.

    Raises ValidationError, which also names the other errors of the request.
    """
    pk = parse_integer(text)
    if pk is None:
        raise ValidationError({"book_id": [INVALID_INTEGER], **find_other_errors()})
    return pk


def require_known_book(pk: int) -> None:
    """Raises BookNotFound if neither the books nor the history have this id."""
    if not Book.objects.filter(pk=pk).exists() and not Change.objects.filter(book_id=pk).exists():
        raise BookNotFound


def book_path(request: Request, pk: int) -> str:
    """Returns the path of a book in the version of the request."""
    return reverse(f"{request.version}:book", args=[pk])


class IsbnInUseByBook(IsbnInUse):
    """Another book has this isbn. The error links to it, if it is one of the books that the view shows."""

    def __init__(self, isbn: str, books: QuerySet[Book]) -> None:
        super().__init__(isbn)
        self.books = books

    def get_content(self, request: Request) -> ErrorContent:
        url = find_holder_url(self.isbn, self.books, request)
        detail = FieldError("body", "isbn", name_holder(url) if url else self.default_detail, "unique")
        return ErrorContent(
            self.status_code, self.default_detail, [detail], {"Link": f'<{url}>; rel="related"'} if url else {}
        )


def name_holder(url: str) -> str:
    return f"The book at {url} has it"


def find_holder_url(isbn: str, books: QuerySet[Book], request: Request) -> str | None:
    """Returns the URL of the book that has the isbn, or None if it is none of these books."""
    pk = Book.objects.filter(isbn=isbn, pk__in=books.values("pk")).values_list("pk", flat=True).first()
    return f"{settings.PUBLIC_URL}{book_path(request, pk)}" if pk else None
