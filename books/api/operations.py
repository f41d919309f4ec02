"""Checks of a book's id that views of all versions share."""

from typing import Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.settings import api_settings

from books import changes
from books.models import Book
from library_site.api.query import INVALID_INTEGER, UnknownParameter
from library_site.db.integers import parse_integer


def parse_book_id(book_id: str, problems: Any = ()) -> int:
    """Returns the integer of the path. Raises ValidationError unless it is ASCII digits with an optional minus.

    `problems` are the other problems of the request; the exception names them, too.
    """
    number = parse_integer(book_id)
    if number is None:
        raise ValidationError({"book_id": [INVALID_INTEGER], **dict(problems)})
    return number


def check_existence_first(book_id: str, error: Exception) -> None:
    """Raises the exception that comes before this error: BookNotFound, or ValidationError for a malformed id."""
    if isinstance(error, ParseError):
        require_book_exists(parse_book_id(book_id, {api_settings.NON_FIELD_ERRORS_KEY: [error.detail]}))
    elif isinstance(error, ValidationError | UnknownParameter):
        require_book_exists(parse_book_id(book_id, error.detail))


def require_book_exists(pk: int) -> None:
    """Raises BookNotFound if no book has this id."""
    if not Book.objects.filter(pk=pk).exists():
        raise changes.BookNotFound
