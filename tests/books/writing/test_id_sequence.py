"""The id of a deleted book is never given to another one, whatever happens to the database."""

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from books.rows import BookRow
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.program_fixtures import request_dump_programs
from tests.support.server import (
    build_database_url,
    copy_seeded_database,
    create_database,
    drop_database,
    is_sqlite,
    run_in_shell,
)
from tests.support.sql import fetch_all
from tests.support.waiting import PROCESS_TIMEOUT

# What lowers the sequence to the highest id of the books that there are.
LOWER_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', coalesce(max(id), 1), max(id) IS NOT NULL) FROM books_book",
    "sqlite": "UPDATE sqlite_sequence SET seq = (SELECT ifnull(max(id), 0) FROM books_book) WHERE name = 'books_book'",
}
RAISE_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', {})",
    "sqlite": "UPDATE sqlite_sequence SET seq = {} WHERE name = 'books_book'",
}
REMAKE_TABLE = """
from django.core.management import call_command
from django.db import connection
from books.models import Book

with connection.schema_editor() as editor:
    editor._remake_table(Book)
call_command("migrate", verbosity=0)
"""
COLUMNS = (
    "title, author, year, genre, available, created_at, updated_at, version, title_folded, author_folded, genre_folded"
)
ADD_BOOK = f"INSERT INTO books_book ({COLUMNS}, isbn) SELECT {COLUMNS}, '{{}}' FROM books_book LIMIT 1 RETURNING id"  # noqa: S608  # of constants
DELETE_NEWEST = """
from django.utils import timezone
from books.writing import changes
from books.history.actors import ActorRef
from books.models import Book

changes.delete_book(Book.objects.latest("pk").pk, lambda book: None, ActorRef(0), timezone.now())
"""


def require_nothing(book: BookRow) -> None:
    """Lets every change be made."""


def add_book() -> int:
    return changes.create_book(build_book(), ACTOR, timezone.now()).id


def delete_book(pk: int) -> None:
    changes.delete_book(pk, require_nothing, ACTOR, timezone.now())


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize("others", [0, 2])
def test_migrate_skips_the_ids_of_deleted_books(others: int) -> None:
    for _ in range(others):
        add_book()
    pk = add_book()
    delete_book(pk)
    execute(LOWER_SQL[connection.vendor])
    call_command("migrate", verbosity=0)
    assert add_book() == pk + 1


@pytest.mark.usefixtures("db")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="a sequence of PostgreSQL always has a row")
def test_migrate_skips_the_ids_of_deleted_books_in_a_table_that_never_had_one() -> None:
    pk = add_book()
    delete_book(pk)
    execute("DELETE FROM sqlite_sequence WHERE name = 'books_book'")
    call_command("migrate", verbosity=0)
    assert add_book() == pk + 1


@pytest.mark.usefixtures("transactional_db")
def test_migrate_never_lowers_the_sequence() -> None:
    """Books that are older than the history may have been deleted."""
    pk = add_book()
    execute(RAISE_SQL[connection.vendor].format(pk + 50))
    call_command("migrate", verbosity=0)
    assert add_book() == pk + 51


@pytest.mark.usefixtures("db")
def test_a_restored_book_does_not_change_the_ids_of_others() -> None:
    pk = add_book()
    delete_book(pk)
    changes.restore_book(pk, ACTOR, timezone.now())
    delete_book(pk)
    assert add_book() == pk + 1


@pytest.mark.usefixtures("db")
@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_loaddata_skips_the_ids_of_deleted_books(tmp_path: Path) -> None:
    """A fixture has no books, but their history knows the ids."""
    pk = add_book()
    delete_book(pk)
    fixture = str(tmp_path / "history.json")
    call_command("dumpdata", "books.change", output=fixture)
    execute("DELETE FROM books_change")
    execute(LOWER_SQL[connection.vendor])
    call_command("loaddata", fixture, verbosity=0)
    assert add_book() == pk + 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL changes tables in place")
def test_migrate_skips_the_ids_of_deleted_books_after_the_table_was_made_anew(tmp_path: Path) -> None:
    with copy_seeded_database(tmp_path) as url:
        [(pk,)] = fetch_all(url, "SELECT max(id) FROM books_book")
        run_in_shell(url, DELETE_NEWEST + REMAKE_TABLE)
        assert fetch_all(url, ADD_BOOK.format("new")) == [(pk + 1,)]


@contextmanager
def copy_by_dump(url: str, folder: Path) -> Iterator[str]:
    """Yields the address of a new database that was made of a dump."""
    if is_sqlite():
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.execute("VACUUM INTO ?", [str(folder / "copy.sqlite3")])
        yield f"sqlite:///{folder / 'copy.sqlite3'}"
        return
    name = create_database("CREATE DATABASE {}")
    dump = subprocess.run(["pg_dump", "--dbname", url], check=True, capture_output=True, timeout=PROCESS_TIMEOUT)
    load: Any = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "--dbname", build_database_url(name)]
    subprocess.run(load, input=dump.stdout, check=True, capture_output=True, timeout=PROCESS_TIMEOUT)
    yield build_database_url(name)
    drop_database(name)


@request_dump_programs
def test_a_dump_has_the_last_id(tmp_path: Path) -> None:
    with copy_seeded_database(tmp_path) as url:
        [(pk,)] = fetch_all(url, ADD_BOOK.format("newest"))
        fetch_all(url, f"DELETE FROM books_book WHERE id = {pk}")  # noqa: S608  # a number
        with copy_by_dump(url, tmp_path) as copy_url:
            assert fetch_all(copy_url, ADD_BOOK.format("new")) == [(pk + 1,)]
