"""The id of a deleted book is never given to another one, whatever happens to the database."""

from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from books.writing import changes
from library_site.db.sql import execute
from tests.support.books import ACTOR
from tests.support.books_admin import create_book, delete_book

# What lowers the sequence to the highest id of the books that there are.
LOWER_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', coalesce(max(id), 1), max(id) IS NOT NULL) FROM books_book",
    "sqlite": "UPDATE sqlite_sequence SET seq = (SELECT ifnull(max(id), 0) FROM books_book) WHERE name = 'books_book'",
}
RAISE_SQL = {
    "postgresql": "SELECT setval('books_book_id_seq', {})",
    "sqlite": "UPDATE sqlite_sequence SET seq = {} WHERE name = 'books_book'",
}


@pytest.mark.usefixtures("transactional_db")
def test_migrate_skips_the_ids_of_deleted_books_and_lowers_nothing() -> None:
    book = create_book()
    pk = book.pk
    delete_book(book)
    changes.restore_book(pk, ACTOR, timezone.now())
    delete_book(book)
    # A table of SQLite that never had a row has no sequence.
    none = ["DELETE FROM sqlite_sequence WHERE name = 'books_book'"] if connection.vendor == "sqlite" else []
    for statement in (LOWER_SQL[connection.vendor], *none):
        execute(statement)
        call_command("migrate", verbosity=0)
        pk += 1
        book = create_book()
        assert book.pk == pk, statement
        delete_book(book)
    # Books that are older than the history may have been deleted.
    execute(RAISE_SQL[connection.vendor].format(pk + 50))
    call_command("migrate", verbosity=0)
    assert create_book().pk == pk + 51


@pytest.mark.usefixtures("db")
@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_loaddata_skips_the_ids_of_deleted_books(tmp_path: Path) -> None:
    """A fixture has no books, but their history knows the ids."""
    delete_book(book := create_book())
    fixture = str(tmp_path / "history.json")
    call_command("dumpdata", "books.change", output=fixture)
    execute("DELETE FROM books_change")
    execute(LOWER_SQL[connection.vendor])
    call_command("loaddata", fixture, verbosity=0)
    assert create_book().pk == book.pk + 1
