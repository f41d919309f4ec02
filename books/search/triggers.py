"""Maintains the triggers of the book table, for the tables of lent books and of search texts, and SQLite's indexes.

Some programs that copy databases disable triggers. Then these tables are incomplete.

Django drops triggers when it recreates a table on SQLite, as most migrations of a column or a constraint do.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.core import checks
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction

from books.search import lent_books, search_texts

# An `import` statement cannot name these modules. They define the tables and the triggers.
trigrams = import_module("books.migrations.0001_squashed_0023_operation_results")
lent_triggers = import_module("books.migrations.0028_lent_books").TRIGGERS
text_triggers = import_module("books.migrations.0036_search_texts").TRIGGERS


class KeptTable(NamedTuple):
    """A table that triggers maintain: their statements by name, and the statements that fill the table."""

    triggers: dict[str, str]
    rebuild: list[str]


REBUILD_LENT = [
    "DELETE FROM books_lentbook",
    "INSERT INTO books_lentbook (book_id) SELECT id FROM books_book WHERE NOT available",
]
REBUILD_LOOSE = [
    "INSERT INTO books_trigrams_loose (books_trigrams_loose) VALUES ('delete-all')",
    """
        INSERT INTO books_trigrams_loose (rowid, title, author, genre)
        SELECT book_id, title, author, genre FROM books_searchtext WHERE strict <> ''
    """,
]
REBUILD_TRIGRAMS = ["INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')"]
# By database vendor and table name.
KEPT_TABLES = {
    "sqlite": {
        "books_trigrams": KeptTable(trigrams.TRIGGERS, REBUILD_TRIGRAMS),
        "books_lentbook": KeptTable(lent_triggers["sqlite"], REBUILD_LENT),
        "books_searchtext": KeptTable(text_triggers["sqlite"], [*search_texts.CORRECT_SQL, *REBUILD_LOOSE]),
    },
    "postgresql": {
        "books_lentbook": KeptTable(lent_triggers["postgresql"], REBUILD_LENT),
        "books_searchtext": KeptTable(text_triggers["postgresql"], search_texts.CORRECT_SQL),
    },
}
DIFFERENCES = {"books_lentbook": lent_books.count_differences, "books_searchtext": search_texts.count_differences}
NAMES_SQL = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass('books_book')",
}


def create_missing_triggers(using: str, **_: Any) -> None:
    """Receives `post_migrate`. Also rebuilds the tables, because books may have changed while triggers were missing."""
    for table, names in iter_missing(using):
        rebuild(using, table, names)
    tables = connections[using].introspection.table_names()
    for name, count in DIFFERENCES.items():
        if name in tables and count(using):
            rebuild(using, KEPT_TABLES[connections[using].vendor][name])


def rebuild(using: str, table: KeptTable, missing: Sequence[str] = ()) -> None:
    """Rebuilds the table from the books, and its missing triggers. Writers of books wait for it."""
    lock = ["LOCK TABLE books_book IN SHARE ROW EXCLUSIVE MODE"] if connections[using].vendor == "postgresql" else []
    with transaction.atomic(using), connections[using].cursor() as cursor:
        for statement in (*lock, *(table.triggers[name] for name in missing), *table.rebuild):
            cursor.execute(statement)


def find_missing_triggers(using: str) -> list[str]:
    """Returns the names of missing triggers. Ignores tables that do not exist yet."""
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


@checks.register
def check_triggers(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Only the library's own processes fail. Other commands must start, because `migrate` creates the triggers."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    # Requests report that the database is not available.
    with suppress(OperationalError):
        if names := find_missing_triggers(DEFAULT_DB_ALIAS):
            return [
                checks.Error(
                    f"Searches and lists of lent books do not follow changes: {', '.join(names)} is missing.",
                    hint="`manage.py migrate` makes it.",
                    id="books.E001",
                )
            ]
    return []
