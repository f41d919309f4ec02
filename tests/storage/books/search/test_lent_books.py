"""The table of lent books agrees with the books, whoever writes them; each test of the suite ends with that check."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.db import connection, transaction

from books.models import LentBook
from books.search.lent_books import count_differences
from books.search.triggers import KEPT_TABLES, create_missing_triggers, find_missing_triggers, rebuild
from library_site.db.sql import fetch_all
from tests.support.books_admin import create_book
from tests.support.concurrency import start_concurrently

migration: Any = import_module("books.migrations.0029_lent_books_filled")
# What a change of a book writes, besides fields that are sorted or searched by.
COLUMNS_OF_LOANS = {"available", "version", "updated_at"}
INDEXES_SQL = {
    "postgresql": "SELECT indexdef FROM pg_indexes WHERE tablename = 'books_book'",
    "sqlite": "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'books_book' AND sql IS NOT NULL",
}


def fill() -> None:
    migration.fill(None, SimpleNamespace(connection=connection))


def lend(api: httpx.Client, *ids: int) -> None:
    for pk in ids:
        assert api.patch(f"/api/v2/books/{pk}", json={"available": False}).status_code == 200


def list_lent() -> list[int]:
    return list(LentBook.objects.order_by("book_id").values_list("book_id", flat=True))


def test_no_index_has_what_a_loan_changes(db: None) -> None:
    """Else PostgreSQL writes all indexes of the book at each loan (PostgreSQL manual, 73.7)."""
    definitions = [definition for (definition,) in fetch_all(INDEXES_SQL[connection.vendor], [])]
    assert definitions
    assert [text for text in definitions for name in COLUMNS_OF_LOANS if name in text] == []


def test_a_loan_enters_a_book_and_its_return_removes_it(api: httpx.Client, book: dict[str, Any]) -> None:
    lend(api, book["id"])
    assert list_lent() == [book["id"]]
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1900})
    assert list_lent() == [book["id"]]
    api.delete(f"/api/v2/books/{book['id']}")
    assert list_lent() == []
    api.post(f"/api/v2/books/{book['id']}/restore")
    assert list_lent() == [book["id"]]
    api.patch(f"/api/v2/books/{book['id']}", json={"available": True})
    assert list_lent() == []


def test_missing_triggers_and_differences_are_found_and_corrected(api: httpx.Client) -> None:
    name, (first, second) = "book_lent_update", (create_book().pk, create_book().pk)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER {name}{' ON books_book' if connection.vendor == 'postgresql' else ''}")
    lend(api, first)
    assert (find_missing_triggers("default"), list_lent()) == ([name], [])
    create_missing_triggers("default")
    assert (find_missing_triggers("default"), list_lent()) == ([], [first])
    LentBook.objects.filter(pk=first).delete()
    LentBook.objects.create(pk=second)
    LentBook.objects.create(pk=-1)
    assert count_differences() == 3
    create_missing_triggers("default")
    assert (count_differences(), list_lent()) == (0, [first])


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time")
def test_who_changes_books_waits_while_the_table_is_made_again(db: None) -> None:
    with transaction.atomic():
        rebuild("default", KEPT_TABLES["postgresql"]["books_lentbook"])
        locks = fetch_all(
            "SELECT mode FROM pg_locks WHERE relation = 'books_book'::regclass AND pid = pg_backend_pid()", ()
        )
    assert ("ShareRowExclusiveLock",) in locks


def test_the_migration_enters_all_that_are_lent(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "BATCH", 2)
    ids = [create_book().pk for _ in range(5)]
    lend(api, *ids[1:4])
    LentBook.objects.exclude(pk=ids[2]).delete()
    fill()
    assert list_lent() == ids[1:4]


@pytest.mark.unannounced
@pytest.mark.unrecorded
@pytest.mark.django_db(transaction=True)
def test_the_migration_does_not_enter_a_book_that_is_taken_back_meanwhile(
    api: httpx.Client, book: dict[str, Any]
) -> None:
    lend(api, book["id"])
    LentBook.objects.all().delete()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE books_book SET available = true WHERE id = %s", [book["id"]])
        filling = start_concurrently(fill)
    filling.result()
    assert list_lent() == []
