"""Operations on books that both doors share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.settings import api_settings

from books import changes
from books.models import Book
from library_site.api.query import INVALID_INTEGER, UnknownParameter
from library_site.db.integers import parse_integer


def parse_book_id(book_id: str, problems: Any = ()) -> int:
    """The path's integer. Raises ValidationError for anything but ASCII digits with an optional minus.

    `problems` are what else is wrong with the request, to be named with it.
    """
    number = parse_integer(book_id)
    if number is None:
        raise ValidationError({"book_id": [INVALID_INTEGER], **dict(problems)})
    return number


@contextmanager
def check_existence_first(book_id: str) -> Iterator[None]:
    """An unknown id outranks what else is wrong with a request. Raises BookNotFound, ValidationError."""
    try:
        yield
    except ParseError as error:
        require_book_exists(parse_book_id(book_id, {api_settings.NON_FIELD_ERRORS_KEY: [error.detail]}))
        raise
    except (ValidationError, UnknownParameter) as error:
        require_book_exists(parse_book_id(book_id, error.detail))
        raise


def require_book_exists(pk: int) -> None:
    """Raises BookNotFound."""
    if not Book.objects.filter(pk=pk).exists():
        raise changes.BookNotFound
