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
from books.models import DERIVED, Book
from library_site.db.integers import LARGEST
from library_site.db.sql import Row, Statement
from webhooks.outbox import UNKNOWN, Announcement, telling, told, wake_workers
from webhooks.registry import CREATED, UPDATED

# The database knows what the others begin with.
GIVEN = [field.name for field in Book._meta.concrete_fields if field.db_default is NOT_PROVIDED and field.name != "id"]
NAMES = [field.attname for field in Book._meta.concrete_fields]
given = attrgetter(*GIVEN)
INSERT = (
    f"INSERT INTO books_book ({', '.join(GIVEN)}) VALUES ({', '.join('%s' for _ in GIVEN)})"  # noqa: S608  # of our own names
    " ON CONFLICT (isbn) DO NOTHING RETURNING id"
)
FIND = Statement("SELECT {} FROM books_book WHERE id = %s".format(", ".join(NAMES)))  # noqa: S608  # of our own names
UPDATE = "UPDATE books_book SET {} WHERE id = %s AND version = %s RETURNING id"


def possible() -> bool:
    return settings.COMPILED_PATH and connection.vendor == "postgresql"


def insert(book: Book, now: datetime) -> bool:
    """Gives the new book its id; false where its isbn is in use. Raises SeveralSubjects."""
    follow(book)
    parameters = [*given(book), *told(nameless(events.added(book)), now)]
    for (book.pk,) in write(telling(INSERT, CREATED), parameters):
        return True
    return False


def find(pk: int) -> Book | None:
    found = FIND.rows((pk,)) if abs(pk) <= LARGEST else []
    return Book.from_db(connection.alias, NAMES, found[0]) if found else None


def rewrite(book: Book, names: Sequence[str], before: Row, now: datetime) -> bool:
    """Writes these columns of a book that was altered; false where it is no more as it was `before`.

    Raises SeveralSubjects.
    """
    follow(book)
    parameters = [*(getattr(book, name) for name in names), book.pk, book.version - 1]
    parameters += told(nameless(events.changed(book, before)), now)
    return bool(write(telling(updating(tuple(names)), UPDATED), parameters))


@cache
def updating(names: tuple[str, ...]) -> str:
    return UPDATE.format(", ".join(f"{name} = %s" for name in names))


def write(statement: Statement, parameters: Sequence[Any]) -> list[Row]:
    """In a caller's transaction behind a savepoint: a failure shall not take that with it."""
    with transaction.atomic() if connection.in_atomic_block else nullcontext():
        written = statement.rows(parameters)
    wake_workers()
    return written


def nameless(announcement: Announcement) -> Announcement:
    """Its book gets the id that the database has."""
    announcement.data["book"].id = UNKNOWN
    return announcement


def follow(book: Book) -> None:
    """Sets what is derived from other members."""
    for field in DERIVED:
        field.pre_save(book, add=False)
