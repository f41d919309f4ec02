"""A book and its event in one statement, which is a transaction of its own or part of its caller's (PostgreSQL)."""

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import NOT_PROVIDED

from books import events
from books.events import CREATED, UPDATED
from books.models import DERIVED_FIELDS, Book
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import PreparedStatement, Row
from webhooks.outbox import (
    BODY_WITH_ID_SQL,
    change_with_event_sql,
    event_params,
    new_event_params,
    notify_workers,
)

# The database knows what the others begin with.
INSERT_COLUMNS = [
    field.name for field in Book._meta.concrete_fields if field.db_default is NOT_PROVIDED and field.name != "id"
]
BOOK_COLUMNS = [field.attname for field in Book._meta.concrete_fields]
get_insert_values = attrgetter(*INSERT_COLUMNS)
INSERT_SQL = (
    f"INSERT INTO books_book ({', '.join(INSERT_COLUMNS)}) VALUES ({', '.join('%s' for _ in INSERT_COLUMNS)})"
    " ON CONFLICT (isbn) DO NOTHING RETURNING id"
)
FIND_STATEMENT = PreparedStatement("SELECT {} FROM books_book WHERE id = %s".format(", ".join(BOOK_COLUMNS)))
UPDATE_SQL = "UPDATE books_book SET {} WHERE id = %s AND version = %s RETURNING id"


def is_supported() -> bool:
    return settings.COMPILED_PATH and connection.vendor == "postgresql"


def insert_with_event(book: Book, now: datetime) -> bool:
    """Gives the new book its id; false where its isbn is in use."""
    set_derived(book)
    parameters = [*get_insert_values(book), *new_event_params(CREATED, events.created_data_parts(book), now)]
    for (book.pk,) in write(change_with_event_sql(INSERT_SQL, CREATED, BODY_WITH_ID_SQL), parameters):
        return True
    return False


def find_book(pk: int) -> Book | None:
    found = FIND_STATEMENT.fetch_all((pk,)) if abs(pk) <= BIGINT_MAX else []
    return Book.from_db(connection.alias, BOOK_COLUMNS, found[0]) if found else None


def update_with_event(book: Book, names: Sequence[str], before: Row, now: datetime) -> bool:
    """Writes these columns of a book that was altered; false where it is no more as it was `before`."""
    set_derived(book)
    parameters = [*(getattr(book, name) for name in names), book.pk, book.version - 1]
    parameters += event_params(events.updated_event(book, before), now)
    return bool(write(change_with_event_sql(update_sql(tuple(names)), UPDATED), parameters))


@cache
def update_sql(names: tuple[str, ...]) -> str:
    return UPDATE_SQL.format(", ".join(f"{name} = %s" for name in names))


def write(statement: PreparedStatement, parameters: Sequence[Any]) -> list[Row]:
    """In a caller's transaction behind a savepoint: a failure shall not take that with it."""
    with transaction.atomic() if connection.in_atomic_block else nullcontext():
        written = statement.fetch_all(parameters)
    notify_workers()
    return written


def set_derived(book: Book) -> None:
    """Sets what is derived from other members."""
    for field in DERIVED_FIELDS:
        field.pre_save(book, add=False)
