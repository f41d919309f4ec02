"""A book as a row of its table. Changes and events use rows, because a model object takes longer than its statement."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django.db import DEFAULT_DB_ALIAS

from books.models import DERIVED_FIELDS, FIELD_DEFAULTS, Book


class BookValues(NamedTuple):
    """All columns of a book, with the values of the model's fields. A new book has id 0."""

    id: int
    title: str
    author: str
    year: int
    isbn: str
    isbn13: str | None
    genre: str
    available: bool
    created_at: datetime
    updated_at: datetime
    version: int
    title_folded: str
    author_folded: str
    genre_folded: str

    def find_changes(self, values: Mapping[str, Any], now: datetime) -> dict[str, Any]:
        """Returns the changed columns of the next version; empty if the book already has these values."""
        new_values = {name: value for name, value in values.items() if getattr(self, name) != value}
        if not new_values:
            return {}
        return {**add_derived_values(new_values), "updated_at": now, "version": self.version + 1}


def make_row(values: Mapping[str, Any], now: datetime) -> BookValues:
    """Returns a book that is not written to the database yet."""
    defaults = {"id": 0, **FIELD_DEFAULTS, "created_at": now, "updated_at": now, "version": 1}
    return BookValues(**{**defaults, **add_derived_values(values)})


def add_derived_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values, and the columns that are computed from them."""
    sources = ((field, values[field.source]) for field in DERIVED_FIELDS if field.source in values)
    return {**values, **{field.attname: field.derive(source) for field, source in sources}}


def make_book_values(book: Book) -> BookValues:
    """Returns the row of a book that was read."""
    return BookValues._make(getattr(book, name) for name in BookValues._fields)


def set_columns(instance: Book, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(instance, name, value)
    instance._state.adding, instance._state.db = False, DEFAULT_DB_ALIAS
