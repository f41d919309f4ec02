"""Fills the history of a library with changes."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from benchmarks.support.questions import (
    BUSY_BOOK,
    BUSY_BOOK_CHANGES,
    COMMON_ACTOR,
    COMMON_CHANNEL,
    RARE_ACTOR,
    RARE_CHANNEL,
)
from tests.support.sql import connect, fetch_all

SPAN = timedelta(days=3 * 365)
CHANGES_PER_BOOK = 4
# The history of all others is that of deleted books: to change a million books would change other measurements.
PRESENT_BOOKS = 1_000
FIRST_DELETED_ID = 100_000_000
RARE_ACTOR_CHANGES = 200
OTHER_ACTORS = 500
ACTOR_COLUMNS = ("channel", "identity", "user_name", "app_name", "api_key_name", "source_name")
CHANGE_COLUMNS = ("book_id", "version", "kind", "at", "actor_id", "before", "after")
CREATED, CHANGED, DELETED = 1, 2, 3
encode = partial(json.dumps, separators=(",", ":"))
DELETED_BOOK = encode(
    {
        "title": "The Lighthouse of Perth",
        "author": "Mary Johnson",
        "year": 1990,
        "isbn": "9780000000002",
        "genre": "Novel",
        "available": True,
        "created_at": "2026-01-31T09:30:00",
    }
)
Row = tuple[Any, ...]


def fill_history(database_url: str, count: int) -> None:
    """Writes `count` changes of many books, and those of the busy book, in the order of their time."""
    now = datetime.now(UTC).replace(tzinfo=None)
    copy_rows(database_url, "books_actor", ACTOR_COLUMNS, iter_actors())
    actors = dict(fetch_all(database_url, "SELECT identity, id FROM books_actor"))
    copy_rows(database_url, "books_change", CHANGE_COLUMNS, iter_changes(count, actors, now))
    fetch_all(database_url, f"UPDATE books_book SET version = {CHANGES_PER_BOOK} WHERE id <= {PRESENT_BOOKS}")
    fetch_all(database_url, f"UPDATE books_book SET version = {BUSY_BOOK_CHANGES} WHERE id = {BUSY_BOOK}")
    fetch_all(database_url, "ANALYZE")


def copy_rows(database_url: str, table: str, columns: tuple[str, ...], rows: Iterable[Row]) -> None:
    names = ", ".join(columns)
    with closing(connect(database_url)) as connection, connection:
        if database_url.startswith("sqlite"):
            placeholders = ", ".join("?" * len(columns))
            connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({placeholders})", rows)
            return
        with connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)


def iter_actors() -> Iterator[Row]:
    for name in (RARE_ACTOR, COMMON_ACTOR, *(f"librarian {number}" for number in range(OTHER_ACTORS))):
        channel = RARE_CHANNEL if name == RARE_ACTOR else COMMON_CHANNEL
        yield channel, name, name, "", "", ""


def iter_changes(count: int, actors: dict[str, int], now: datetime) -> Iterator[Row]:
    """All books are created, then all are changed, and so on."""
    books, step = count // CHANGES_PER_BOOK, SPAN / count
    for number in range(count):
        version, book = number // books + 1, number % books + 1
        actor = actors[choose_actor(number, count)]
        if book != BUSY_BOOK:
            yield build_change(book, version, now - (count - number) * step, actor)
    for version in range(1, BUSY_BOOK_CHANGES + 1):
        at = now - (BUSY_BOOK_CHANGES - version) * (SPAN / BUSY_BOOK_CHANGES)
        yield build_change(BUSY_BOOK, version, at, actors[COMMON_ACTOR])


def choose_actor(number: int, count: int) -> str:
    """The rare actor has the same number of changes in every library, the common one six of ten."""
    if number % (count // RARE_ACTOR_CHANGES) == 0:
        return RARE_ACTOR
    return COMMON_ACTOR if number % 10 < 6 else f"librarian {number % OTHER_ACTORS}"


def build_change(book: int, version: int, at: datetime, actor: int) -> Row:
    is_present = book <= PRESENT_BOOKS
    head = (book if is_present else FIRST_DELETED_ID + book, version)
    if version == 1:
        return (*head, CREATED, str(at), actor, None, None)
    if version == CHANGES_PER_BOOK and not is_present:
        return (*head, DELETED, str(at), actor, DELETED_BOOK, None)
    before, after = encode({"year": 1800 + version}), encode({"year": 1801 + version})
    return (*head, CHANGED, str(at), actor, before, after)
