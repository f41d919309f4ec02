"""Finds books by the ids in addresses."""

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError

from books.models import Book, Change
from books.read_model import has_only_conditions
from books.writing.changes import BookNotFound
from books.writing.signals import build_instance
from books.writing.statements import select_book
from library_site.api.query import INVALID_INTEGER
from library_site.db.integers import BIGINT_MAX, parse_integer


def parse_book_id(text: str, find_other_errors: Callable[[], Any] = dict) -> int:
    """Returns the integer of a path: ASCII digits with an optional minus.

    Raises ValidationError, which names the other errors of the request, too.
    """
    pk = parse_integer(text)
    if pk is None:
        raise ValidationError({"book_id": [INVALID_INTEGER], **find_other_errors()})
    return pk


def require_known_book(pk: int) -> None:
    """Raises BookNotFound if no book has this id and the history knows of none."""
    if not Book.objects.filter(pk=pk).exists() and not Change.objects.filter(book_id=pk).exists():
        raise BookNotFound


def find_book(books: QuerySet[Book], pk: int) -> Book | None:
    """Returns `books.filter(pk=pk).first()`, where nothing narrows the books by a prepared statement."""
    if connection.vendor != "postgresql" or books.query.where or not has_only_conditions(books):
        return books.filter(pk=pk).first() if abs(pk) <= BIGINT_MAX else None
    row = select_book(pk)
    return build_instance(row) if row else None
