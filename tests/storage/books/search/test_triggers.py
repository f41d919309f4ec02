"""SQLite's search index follows changes also after a migration, and the library does not start without it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from books.search.triggers import KEPT_TABLES
from tests.support.forked_commands import run_forked
from tests.support.server import copy_seeded_database, run_command, run_in_shell
from tests.support.sql import fetch_all

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL's indexes need no triggers")

TRIGGERS = {
    name for table in KEPT_TABLES["sqlite"].values() for name, sql in table.triggers.items() if "ON books_book" in sql
}
LIST_TRIGGERS = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'books_book' ORDER BY name"
FIND = "SELECT title FROM books_book WHERE id IN (SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH '{}')"
ADD_BOOK = """
from django.db import transaction
from django.utils import timezone
from books.writing import changes
from books.history.actors import ActorRef

with transaction.atomic():
    changes.create_book(
        {{"title": "{title}", "author": "-", "year": 1, "isbn": "{title}", "genre": "-"}}, ActorRef(0), timezone.now()
    )
"""
# What a migration does that `makemigrations` wrote for a new column with a constraint.
ADD_COLUMN = """
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader

states = [MigrationLoader(connection).project_state()]
operations = [
    migrations.AddField("book", "language", models.CharField(max_length=35, default="", db_default="")),
    migrations.AddConstraint(
        "book", models.CheckConstraint(condition=~models.Q(language="-"), name="book_language_is_no_dash")
    ),
]
with connection.schema_editor() as editor:
    for operation in operations:
        states.append(states[-1].clone())
        operation.state_forwards("books", states[-1])
        operation.database_forwards("books", editor, *states[-2:])
"""

REQUIRE_NONE_MISSING = """
from books.search.triggers import find_missing_triggers

assert find_missing_triggers("default") == []
"""


@pytest.fixture
def database_url(tmp_path: Path) -> Iterator[str]:
    with copy_seeded_database(tmp_path) as url:
        yield url


def list_triggers(database_url: str) -> list[str]:
    return [name for (name,) in fetch_all(database_url, LIST_TRIGGERS)]


def find_titles(database_url: str, text: str) -> list[str]:
    return [title for (title,) in fetch_all(database_url, FIND.format(text))]


def start(database_url: str, command: str) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"DATABASE_URL": database_url}
    return run_forked(environment, command)


def test_books_are_found_after_a_migration_added_a_column(database_url: str) -> None:
    run_in_shell(database_url, ADD_COLUMN)
    assert list_triggers(database_url) == []
    run_in_shell(database_url, ADD_BOOK.format(title="xqz"))
    run_command(os.environ | {"DATABASE_URL": database_url}, "migrate", "-v0")
    run_in_shell(database_url, ADD_BOOK.format(title="zqx"))
    assert list_triggers(database_url) == sorted(TRIGGERS)
    assert [find_titles(database_url, text) for text in ("xqz", "zqx")] == [["xqz"], ["zqx"]]
    assert fetch_all(database_url, "SELECT count(*) FROM books_searchtext WHERE title IN ('xqz', 'zqx')") == [(2,)]
    assert "Pride and Prejudice" in find_titles(database_url, "eju")


def test_the_library_does_not_start_without_the_triggers(database_url: str) -> None:
    fetch_all(database_url, "DROP TRIGGER book_trigrams_insert")
    reason = "Searches and lists of lent books do not follow changes: book_trigrams_insert is missing."
    refused, diagnosis = start(database_url, "serve"), start(database_url, "doctor")
    assert (refused.returncode, diagnosis.returncode) == (1, 1)
    assert f"(books.E001) {reason}" in refused.stderr
    # Where the refusal leads.
    assert "`manage.py doctor`" in refused.stderr
    assert f"problem  settings    books.E001: {reason}" in diagnosis.stdout


def test_a_library_that_was_never_migrated_is_not_missing_triggers(tmp_path: Path) -> None:
    run_in_shell(f"sqlite:///{tmp_path / 'library.sqlite3'}", REQUIRE_NONE_MISSING)
