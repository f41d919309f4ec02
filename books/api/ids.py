"""The ids of books in URLs."""

from collections.abc import Callable
from typing import Any

from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from books.models import Book, Change
from books.writing.changes import BookNotFound
from library_site.api.query import INVALID_INTEGER
from library_site.db.integers import parse_integer


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
