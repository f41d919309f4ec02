"""Keeps the triggers that update SQLite's search index: Django drops them when it makes the book table anew.

It does so in most migrations that change a column or a constraint.
"""

from importlib import import_module
from typing import Any

from django.db import connections, transaction

# Its name is no name of Python. It defines the index and its triggers.
migration = import_module("books.migrations.0001_squashed_0023_operation_results")
TRIGGERS: dict[str, str] = migration.TRIGGERS
REBUILD_SQL = "INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')"


def create_missing_triggers(using: str, **_: Any) -> None:
    """Receives `post_migrate`. Rebuilds the index, too: books may have changed while the triggers were missing."""
    names = find_missing_triggers(using)
    if names:
        with transaction.atomic(using), connections[using].cursor() as cursor:
            for name in names:
                cursor.execute(TRIGGERS[name])
            cursor.execute(REBUILD_SQL)


def find_missing_triggers(using: str) -> list[str]:
    """Returns the names of the missing triggers. On PostgreSQL, and without an index, none is missing."""
    if connections[using].vendor != "sqlite":
        return []
    with connections[using].cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master")
        names = {name for (name,) in cursor.fetchall()}
    return sorted(TRIGGERS.keys() - names) if "books_trigrams" in names else []
