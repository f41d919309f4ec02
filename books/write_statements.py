"""Writes a book and its event in one PostgreSQL statement, in the caller's transaction or in one of its own."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import NOT_PROVIDED

from books import events
from books.events import BOOK_CREATED, BOOK_UPDATED
from books.fields import to_naive_utc
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

# All other columns have a default in the database.
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


def insert_with_event(book: Book, now: datetime) -> bool:
    """Writes a new book and gives it its id. Returns false if another book has its isbn."""
    parameters = [*get_insert_values(book), *new_event_params(BOOK_CREATED, events.created_data_parts(book), now)]
    for book.pk, _ in execute_write(change_with_event_sql(INSERT_SQL, BOOK_CREATED, BODY_WITH_ID_SQL), parameters):
        return True
    return False


def find_book(pk: int) -> Book | None:
    rows = FIND_STATEMENT.fetch_all((pk,)) if abs(pk) <= BIGINT_MAX else []
    return Book.from_db(connection.alias, BOOK_COLUMNS, rows[0]) if rows else None


def update_with_event(book: Book, columns: Sequence[str], previous_row: Row, now: datetime) -> bool:
    """Writes these columns of a book whose object was changed by `changes.alter_object`, which returned `previous_row`.

    Returns false if the book in the database is not at the version before this change.
    """
    parameters = [*(getattr(book, column) for column in columns), book.pk, book.version - 1]
    parameters += event_params(events.updated_event(book, previous_row), now)
    return bool(execute_write(change_with_event_sql(update_sql(tuple(columns)), BOOK_UPDATED), parameters))


@cache
def update_sql(columns: tuple[str, ...]) -> str:
    return UPDATE_SQL.format(", ".join(f"{column} = %s" for column in columns))


def execute_write(statement: PreparedStatement, parameters: Sequence[Any]) -> list[Row]:
    """Runs a statement of `change_with_event_sql`, and notifies workers if there are deliveries.

    Inside a caller's transaction it has a savepoint, so that a failure does not end that one.
    """
    with transaction.atomic() if connection.in_atomic_block else nullcontext():
        rows = statement.fetch_all(parameters)
    if any(has_deliveries for _, has_deliveries in rows):
        notify_workers()
    return rows


def copy_books(rows: Sequence[Mapping[str, Any]], now: datetime) -> set[str]:
    """Adds books by COPY into a temporary table, because COPY itself cannot ignore conflicts."""
    names = list(rows[0])
    columns = ", ".join([*names, *(field.attname for field in DERIVED_FIELDS)])
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.incoming")
        cursor.execute(f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM books_book LIMIT 0")
        with cursor.copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(
                    [*(row[name] for name in names), *(field.derive(row[field.source]) for field in DERIVED_FIELDS)]
                )
        cursor.execute(
            f"INSERT INTO books_book ({columns}, created_at, updated_at)"
            f" SELECT {columns}, %(now)s, %(now)s FROM incoming ON CONFLICT (isbn) DO NOTHING RETURNING isbn",
            {"now": to_naive_utc(now)},
        )
        return {isbn for (isbn,) in cursor.fetchall()}
