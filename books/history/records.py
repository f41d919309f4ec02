"""Builds the rows of the history as SQL and parameters, which are written together with the changes."""

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection

from books.book.fields import FIELDS
from books.book_values import BookValues
from books.fields import to_naive_utc
from books.history.actors import ActorRef
from books.models import Change
from library_site.api.responses import encode_json
from library_site.db.sql import build_source, execute, get_column_types

RECORD_COLUMNS = ("book_id", "version", "kind", "at", "actor_id", "operation_id", "before", "after")
INSERT_RECORD_SQL = f"INSERT INTO books_change ({', '.join(RECORD_COLUMNS)})"
# It follows the statement `changed`, which returns the id of a book. PostgreSQL has its own type for JSON.
HISTORY_CTE = f"history AS ({INSERT_RECORD_SQL} SELECT id, %s, %s, %s, %s, %s, %s::jsonb, %s::jsonb FROM changed)"  # noqa: S608  # our own SQL
RECORD_BATCH = 500
# The key of `after` with the id of the book that this one was merged into.
MERGED_INTO = "merged_into"


class ChangeRecord(NamedTuple):
    """A change of a book, without its actor. `before` and `after` are JSON."""

    book_id: int
    version: int
    kind: int
    before: str | None = None
    after: str | None = None


def record_creation(book: BookValues) -> ChangeRecord:
    return ChangeRecord(book.id, book.version, Change.Kind.CREATED.value)


def record_restoration(book: BookValues) -> ChangeRecord:
    return ChangeRecord(book.id, book.version, Change.Kind.RESTORED.value)


def record_change(previous: BookValues, book: BookValues) -> ChangeRecord:
    """Records the fields that differ. `previous` is the book before the change."""
    names = [name for name in FIELDS if getattr(previous, name) != getattr(book, name)]
    before, after = encode_values(previous, names), encode_values(book, names)
    return ChangeRecord(book.id, book.version, Change.Kind.CHANGED.value, before, after)


def record_deletion(book: BookValues, merged_into: int | None = None) -> ChangeRecord:
    """Records the whole book, and the id of the book that it was merged into. A deletion increases the version."""
    # As in the column, without a time zone: so earlier releases write it, and read it.
    stored = book._replace(created_at=to_naive_utc(book.created_at))
    before = encode_values(stored, (*FIELDS, "created_at"))
    kind, after = Change.Kind.DELETED, None
    if merged_into is not None:
        kind, after = Change.Kind.MERGED, encode_json({MERGED_INTO: merged_into}).decode()
    return ChangeRecord(book.id, book.version + 1, kind.value, before, after)


def encode_values(book: BookValues, names: Iterable[str]) -> str:
    return encode_json({name: getattr(book, name) for name in names}).decode()


def history_params(record: ChangeRecord, actor: ActorRef, now: datetime) -> list[Any]:
    """Returns the parameters of HISTORY_CTE."""
    _, version, kind, before, after = record
    return [version, kind, to_naive_utc(now), actor.id, actor.operation_id, before, after]


def insert_records(records: Iterable[ChangeRecord], actor: ActorRef, now: datetime) -> None:
    at = Change._meta.get_field("at").get_db_prep_save(now, connection)
    iterator = iter(records)
    while batch := list(islice(iterator, RECORD_BATCH)):
        rows = [(*record[:3], at, actor.id, actor.operation_id, *record[3:]) for record in batch]
        source, parameters = build_source(get_column_types(Change, RECORD_COLUMNS), rows)
        execute(f"{INSERT_RECORD_SQL} {source}", parameters)
