"""A statement that needs a table for itself does not stop those who use the table."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DataError, OperationalError, connection, transaction

from books.models import Book
from library_site.db import online_ddl
from library_site.db.online_ddl import execute_with_short_locks
from tests.support.concurrency import run_and_disconnect, start_concurrently

pytestmark = [
    pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables"),
    pytest.mark.django_db(transaction=True),
]

# Like ALTER TABLE, but it changes nothing.
LOCK_TABLE = "LOCK TABLE books_book IN ACCESS EXCLUSIVE MODE"


def count_books() -> int:
    """Waits for the lock on the table as long as a request."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '2s'")
        return Book.objects.count()


def test_others_pass_a_statement_that_waits_for_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_ddl, "DDL_RETRY_INTERVAL", 0.01)
    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        count_books()
        waiting = start_concurrently(lambda: execute_with_short_locks(connection, [LOCK_TABLE]))
        assert [pool.submit(run_and_disconnect, count_books).result() for _ in range(3)] == [0, 0, 0]
        assert not waiting.done()
    assert waiting.result(timeout=30) is None


def test_nothing_is_done_without_all_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(online_ddl, "LOCK_TIMEOUT", "10ms")
    with transaction.atomic():
        count_books()
        statements = ["CREATE TABLE half_done ()", LOCK_TABLE]
        assert start_concurrently(lambda: online_ddl.try_execute(connection, statements)).result(timeout=30) is False
    assert "half_done" not in connection.introspection.table_names()


def test_another_failure_is_raised() -> None:
    with pytest.raises(DataError):
        execute_with_short_locks(connection, ["SELECT 1 / 0"])
    with pytest.raises(OperationalError):
        execute_with_short_locks(connection, ["SET LOCAL statement_timeout = 1", "SELECT pg_sleep(10)"])
