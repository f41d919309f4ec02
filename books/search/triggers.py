"""Keeps the triggers of the book table: those of SQLite's search index, and those that enter lent books.

A trigger that is switched off, as some programs do that copy databases, leaves lent books that are not entered.

Django drops them when it makes a table of SQLite anew, as it does in most migrations that change a column or a
constraint.
"""

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from django.db import connections, transaction

from books.search.lent_books import count_differences

# Their names are no names of Python. They define the tables and the triggers.
trigrams = import_module("books.migrations.0001_squashed_0023_operation_results")
lent_books = import_module("books.migrations.0028_lent_books")


class KeptTable(NamedTuple):
    """A table that triggers keep: their statements by name, and the statements that make it from the books."""

    triggers: dict[str, str]
    rebuild: list[str]


REBUILD_LENT = [
    "DELETE FROM books_lentbook",
    "INSERT INTO books_lentbook (book_id) SELECT id FROM books_book WHERE NOT available",
]
REBUILD_TRIGRAMS = ["INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')"]
# By the kind of database and the name of the table.
KEPT_TABLES = {
    "sqlite": {
        "books_trigrams": KeptTable(trigrams.TRIGGERS, REBUILD_TRIGRAMS),
        "books_lentbook": KeptTable(lent_books.TRIGGERS["sqlite"], REBUILD_LENT),
    },
    "postgresql": {"books_lentbook": KeptTable(lent_books.TRIGGERS["postgresql"], REBUILD_LENT)},
}
NAMES_SQL = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass('books_book')",
}


def create_missing_triggers(using: str, **_: Any) -> None:
    """Receives `post_migrate`. Rebuilds what they keep, too: books may have changed while they were missing."""
    for table, names in iter_missing(using):
        rebuild(using, table, names)
    tables = connections[using].introspection.table_names()
    if "books_lentbook" in tables and count_differences(using):
        rebuild(using, KEPT_TABLES[connections[using].vendor]["books_lentbook"])


def rebuild(using: str, table: KeptTable, missing: Sequence[str] = ()) -> None:
    """Makes the table from the books, and its missing triggers. Who changes books waits meanwhile."""
    lock = ["LOCK TABLE books_book IN SHARE ROW EXCLUSIVE MODE"] if connections[using].vendor == "postgresql" else []
    with transaction.atomic(using), connections[using].cursor() as cursor:
        for statement in (*lock, *(table.triggers[name] for name in missing), *table.rebuild):
            cursor.execute(statement)


def find_missing_triggers(using: str) -> list[str]:
    """Returns their names. None is missing of a table that is not there yet."""
    return [name for _, names in iter_missing(using) for name in names]


def iter_missing(using: str) -> Iterator[tuple[KeptTable, list[str]]]:
    database = connections[using]
    with database.cursor() as cursor:
        cursor.execute(NAMES_SQL[database.vendor])
        present = {name for (name,) in cursor.fetchall()}
        tables = set(database.introspection.table_names(cursor))
    for name, table in KEPT_TABLES[database.vendor].items():
        if name in tables and (missing := sorted(table.triggers.keys() - present)):
            yield table, missing
