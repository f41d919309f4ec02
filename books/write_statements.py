"""Writes a book together with its event: by one statement on PostgreSQL, on SQLite in the caller's transaction."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, transaction

from books import events
from books.events import BOOK_CREATED
from books.models import Book
from books.rows import BookRow, make_row
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import PreparedStatement, Row, execute, fetch_all
from webhooks.outbox import (
    BODY_WITH_ID_SQL,
    EventData,
    change_with_event_sql,
    event_params,
    new_event_params,
    notify_workers,
    publish,
)

FIELDS = {field.attname: field for field in Book._meta.concrete_fields}
INSERT_COLUMNS = tuple(name for name in BookRow._fields if name != "id")
get_insert_values = attrgetter(*INSERT_COLUMNS)
INSERT_SQL = (
    f"INSERT INTO books_book ({', '.join(INSERT_COLUMNS)}) VALUES ({', '.join('%s' for _ in INSERT_COLUMNS)})"
    " ON CONFLICT (isbn) DO NOTHING RETURNING id"
)
FIND_STATEMENT = PreparedStatement("SELECT {} FROM books_book WHERE id = %s".format(", ".join(BookRow._fields)))
UPDATE_SQL = "UPDATE books_book SET {} WHERE id = %s AND version = %s RETURNING id"
# Rows of mirrored books refer to books. The database checks references when the transaction ends.
DELETE_MIRRORED_SQL = "DELETE FROM books_mirroredbook WHERE book_id = %s"
DELETE_SQL = "DELETE FROM books_book WHERE id = %s AND version = %s RETURNING id"


@cache
def can_combine_statements() -> bool:
    """Whether a book and its event are written by one statement, so that it needs no transaction."""
    return connection.vendor == "postgresql"


def find_book(pk: int) -> BookRow | None:
    """Returns a book, which is not locked. The values are those of PostgreSQL's driver."""
    rows = FIND_STATEMENT.fetch_all((pk,)) if abs(pk) <= BIGINT_MAX else []
    return BookRow._make(rows[0]) if rows else None


def insert_book(book: BookRow, now: datetime, announce: bool) -> int | None:
    """Writes a new book. Returns its id, or None if another book has its isbn."""
    values = column_values(INSERT_COLUMNS, book)
    if announce and can_combine_statements():
        event = new_event_params(BOOK_CREATED, events.created_data_parts(book), now)
        statement = change_with_event_sql(INSERT_SQL, BOOK_CREATED, BODY_WITH_ID_SQL)
        rows = execute_combined(statement, [*values, *event])
    else:
        rows = fetch_all(INSERT_SQL, values)
        if announce:
            publish((events.created_event(book._replace(id=pk)) for (pk,) in rows), now)
    return rows[0][0] if rows else None


def update_book(previous: BookRow, book: BookRow, columns: tuple[str, ...], now: datetime, announce: bool) -> bool:
    """Writes these columns of a book. Returns false if the book in the database is not at the previous version."""
    parameters = [*column_values(columns, book), book.id, previous.version]
    event = events.updated_event(previous, book) if announce else None
    return change_existing(update_sql(columns), parameters, event, now)


def delete_book(book: BookRow, now: datetime, announce: bool) -> bool:
    """Deletes a locked book. Returns false if the book in the database is not at this version."""
    execute(DELETE_MIRRORED_SQL, [book.id])
    event = events.deleted_event(book) if announce else None
    return change_existing(DELETE_SQL, [book.id, book.version], event, now)


def change_existing(sql: str, parameters: Sequence[Any], event: EventData | None, now: datetime) -> bool:
    """Returns whether the statement, which returns an id, changed a book."""
    if event and can_combine_statements():
        return bool(execute_combined(change_with_event_sql(sql, event.kind), [*parameters, *event_params(event, now)]))
    rows = fetch_all(sql, parameters)
    if rows and event:
        publish([event], now)
    return bool(rows)


def column_values(columns: Sequence[str], book: BookRow) -> list[Any]:
    """Returns the values in the form that the database expects."""
    values = [getattr(book, column) for column in columns]
    if can_combine_statements():
        return values
    return [FIELDS[name].get_db_prep_save(value, connection) for name, value in zip(columns, values, strict=True)]


@cache
def update_sql(columns: tuple[str, ...]) -> str:
    return UPDATE_SQL.format(", ".join(f"{column} = %s" for column in columns))


def execute_combined(statement: PreparedStatement, parameters: Sequence[Any]) -> list[Row]:
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
    columns = ", ".join(INSERT_COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.incoming")
        cursor.execute(f"CREATE TEMPORARY TABLE incoming ON COMMIT DROP AS SELECT {columns} FROM books_book LIMIT 0")
        with cursor.copy(f"COPY incoming ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(get_insert_values(make_row(row, now)))
        cursor.execute(
            f"INSERT INTO books_book ({columns}) SELECT {columns} FROM incoming"
            " ON CONFLICT (isbn) DO NOTHING RETURNING isbn"
        )
        return {isbn for (isbn,) in cursor.fetchall()}
