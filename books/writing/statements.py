"""Writes a book together with its history and its event: on PostgreSQL in one statement, on SQLite in the caller's
transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from django.db import connection
from django.db.models.sql.compiler import SQLCompiler

from books.book_values import BookValues
from books.history.actors import ActorRef
from books.history.records import (
    HISTORY_CTE,
    ChangeRecord,
    history_params,
    insert_records,
    record_change,
    record_creation,
)
from books.models import FOLDED_COLUMNS, Book
from books.search.search_texts import (
    SEARCH_TEXT_CTE,
    build_search_text,
    build_search_texts_cte,
    insert_search_texts,
)
from books.writing import events
from books.writing.events import BOOK_CREATED, BOOK_UPDATED
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import PreparedStatement, Row, build_source, execute, fetch_all, get_column_types
from webhooks.outbox import EventData, event_params, execute_with_event, open_savepoint, publish

FIELDS = {field.attname: field for field in Book._meta.concrete_fields}
INSERT_COLUMNS = tuple(name for name in BookValues._fields if name != "id")
# SQLite limits the parameters of a statement.
MAX_INSERTED_ROWS = 1_000
INSERT_BOOK_SQL = (
    f"INSERT INTO books_book ({', '.join(INSERT_COLUMNS)}) VALUES ({', '.join('%s' for _ in INSERT_COLUMNS)})"
    " ON CONFLICT (isbn) DO NOTHING RETURNING id"
)
FIND_SQL = "SELECT {} FROM books_book WHERE id = %s".format(", ".join(BookValues._fields))
FIND_STATEMENT = PreparedStatement(FIND_SQL)
LOCK_SQL = {"postgresql": f"{FIND_SQL} FOR UPDATE", "sqlite": FIND_SQL}
UPDATE_SQL = "UPDATE books_book SET {} WHERE id = %s AND version = %s RETURNING id"
UPDATE_MANY_SQL = (
    "UPDATE books_book AS book SET {} FROM ({}) AS new WHERE book.id = new.id AND book.version = new.version - 1"
)


@cache
def can_combine_statements() -> bool:
    """Whether one statement writes a book, its history and its event, so that no transaction is needed."""
    return connection.vendor == "postgresql"


def select_book(pk: int) -> BookValues | None:
    """Returns a book without locking it."""
    return build_book(FIND_STATEMENT.fetch_all((pk,)) if abs(pk) <= BIGINT_MAX else [])


def lock_row(pk: int) -> BookValues | None:
    """Locks and returns a book until the transaction ends. The transaction must have begun.

    Django takes as long to build this statement as SQLite takes for the whole write.
    """
    return build_book(fetch_all(LOCK_SQL[connection.vendor], [pk]) if abs(pk) <= BIGINT_MAX else [])


def build_book(rows: Sequence[Row]) -> BookValues | None:
    """Returns the book of a row from the driver, with the values of the model's fields; None without a row."""
    compiler, converters = build_converters()
    return next(map(BookValues._make, compiler.apply_converters(rows, converters)), None)


@cache
def build_converters() -> tuple[SQLCompiler, Any]:
    """Returns the converters of a book's columns, with the compiler that applies them."""
    compiler = Book.objects.values_list(*BookValues._fields).query.get_compiler(connection=connection)
    compiler.setup_query()
    return compiler, compiler.get_converters([expression for expression, *_ in compiler.select])


def insert_row(book: BookValues, actor: ActorRef, now: datetime) -> int | None:
    """Inserts a new book. Returns its id, or None if another book has its isbn."""
    values = adapt_values(INSERT_COLUMNS, book)
    if can_combine_statements():
        parameters = [*values, *history_params(record_creation(book), actor, now)]
        event = event_params(events.created_event(book), now)
        return execute_combined(INSERT_BOOK_SQL, parameters, build_search_text(book), BOOK_CREATED, event)
    rows = fetch_all(INSERT_BOOK_SQL, values)
    if not rows:
        return None
    new_book = book._replace(id=rows[0][0])
    insert_search_texts({new_book.id: book})
    record_and_publish(record_creation(new_book), events.created_event(new_book), actor, now)
    return new_book.id


def update_row(
    previous: BookValues, book: BookValues, columns: tuple[str, ...], actor: ActorRef, now: datetime, announce: bool
) -> bool:
    """Updates these columns of a book. Returns false if the book is not at the previous version in the database."""
    sql, parameters = update_sql(columns), [*adapt_values(columns, book), book.id, previous.version]
    record, event = record_change(previous, book), events.updated_event(previous, book) if announce else None
    if can_combine_statements():
        event_parameters = event_params(event, now) if event else None
        all_parameters = [*parameters, *history_params(record, actor, now)]
        texts = build_search_text(book) if has_texts(columns) else []
        return execute_combined(sql, all_parameters, texts, BOOK_UPDATED, event_parameters) is not None
    is_written = bool(fetch_all(sql, parameters))
    if is_written:
        insert_search_texts({book.id: book} if has_texts(columns) else {})
        record_and_publish(record, event, actor, now)
    return is_written


def update_rows(books: Sequence[BookValues], columns: Sequence[str]) -> int:
    """Updates these columns of locked books, `version` among them. Returns the number that had the version before."""
    rows = [adapt_values([*columns, "id"], book) for book in books]
    source, parameters = build_source(get_column_types(Book, (*columns, "id")), rows)
    assignments = ", ".join(f"{name} = new.{name}" for name in columns)
    insert_search_texts({book.id: book for book in books} if has_texts(columns) else {})
    return execute(UPDATE_MANY_SQL.format(assignments, source), parameters)


def insert_rows(books: Sequence[BookValues], columns: Sequence[str]) -> list[BookValues]:
    """Inserts these columns of books, except of those whose id or isbn is in use. Returns the books with their ids."""
    inserted_books: list[BookValues] = []
    types = get_column_types(Book, tuple(columns))
    for start in range(0, len(books), MAX_INSERTED_ROWS):
        batch = books[start : start + MAX_INSERTED_ROWS]
        source, parameters = build_source(types, [adapt_values(columns, book) for book in batch])
        sql = f"INSERT INTO books_book ({', '.join(columns)}) {source} ON CONFLICT DO NOTHING RETURNING isbn, id"
        if can_combine_statements():
            texts_cte, texts = build_search_texts_cte(batch)
            sql = f"WITH changed AS ({sql}), {texts_cte} SELECT isbn, id FROM changed"
            parameters += texts
        ids: dict[str, int] = dict(fetch_all(sql, parameters))
        inserted = [book for book in batch if book.isbn in ids and book.id in (0, ids[book.isbn])]
        inserted_books += [book._replace(id=ids[book.isbn]) for book in inserted]
    if not can_combine_statements():
        insert_search_texts({book.id: book for book in inserted_books})
    return inserted_books


def has_texts(columns: Sequence[str]) -> bool:
    """Whether the columns have a text that searches look for."""
    return not FOLDED_COLUMNS.keys().isdisjoint(columns)


def record_and_publish(record: ChangeRecord, event: EventData | None, actor: ActorRef, now: datetime) -> None:
    insert_records([record], actor, now)
    if event:
        publish([event], now)


def adapt_values(columns: Sequence[str], book: BookValues) -> list[Any]:
    """Returns the values in the format of the database: only times have one of their own."""
    values = [getattr(book, column) for column in columns]
    return [adapt_time(value) if isinstance(value, datetime) else value for value in values]


# Cached because the books of a batch have the same times.
@lru_cache(maxsize=16)
def adapt_time(value: datetime) -> Any:
    return FIELDS["created_at"].get_db_prep_save(value, connection)


@cache
def update_sql(columns: tuple[str, ...]) -> str:
    return UPDATE_SQL.format(", ".join(f"{column} = %s" for column in columns))


def execute_combined(
    sql: str,
    parameters: Sequence[Any],
    texts: Sequence[str],
    kind: str,
    event: Sequence[Any] | None,
) -> int | None:
    """Runs one statement with a change, its record and, if there are any, its search texts and its event.

    Returns the id, None if nothing was changed.
    """
    ctes = f"changed AS ({sql}), {HISTORY_CTE}{f', {SEARCH_TEXT_CTE}' if texts else ''}"
    parameters = [*parameters, *texts]
    if event is not None:
        return execute_with_event(ctes, parameters, kind, event)
    with open_savepoint():
        rows = build_unannounced_statement(ctes).fetch_all(parameters)
        return rows[0][0] if rows else None


@cache
def build_unannounced_statement(ctes: str) -> PreparedStatement:
    return PreparedStatement(f"WITH {ctes} SELECT id FROM changed")
