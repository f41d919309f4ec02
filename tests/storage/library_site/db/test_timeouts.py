"""Which failures of the database are time-outs: the next statement may well succeed."""

import sqlite3
from contextlib import closing

import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from library_site.db.errors import is_timeout
from library_site.db.sql import execute
from tests.support.sql import connect

sqlite_alone = pytest.mark.skipif(connection.vendor != "sqlite", reason="What SQLite reports")
postgresql_alone = pytest.mark.skipif(connection.vendor != "postgresql", reason="What PostgreSQL reports")


@pytest.fixture
def raw(transactional_db: None) -> sqlite3.Connection:
    """The connection of the driver."""
    connection.ensure_connection()
    raw: sqlite3.Connection = connection.connection
    return raw


@sqlite_alone
def test_a_statement_that_was_interrupted_is_one(raw: sqlite3.Connection) -> None:
    """As at a stop of the server, which interrupts all statements."""
    raw.set_progress_handler(lambda: 1, 1)
    with pytest.raises(OperationalError) as failure:
        execute("SELECT count(*) FROM books_book")
    raw.set_progress_handler(None, 1)
    assert is_timeout(failure.value)


@sqlite_alone
def test_a_lock_of_another_program_is_one(raw: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("library_site.db.sqlite.base.SQLITE_TIMEOUT", 0.01)
    with closing(connect(f"sqlite:///{connection.settings_dict['NAME']}")) as program:
        program.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError) as failure:
            execute("DELETE FROM books_book")
    connection.close()
    assert is_timeout(failure.value)


@postgresql_alone
def test_a_statement_beyond_its_limit_is_one(db: None) -> None:
    with transaction.atomic():
        execute("SET LOCAL statement_timeout = 1")
        with pytest.raises(OperationalError) as failure:
            execute("SELECT pg_sleep(1)")
        transaction.set_rollback(True)
    assert is_timeout(failure.value)


def test_a_wrong_statement_is_none(db: None) -> None:
    with pytest.raises(DatabaseError) as failure, transaction.atomic():
        execute("SELECT 1 FROM nowhere")
    assert not is_timeout(failure.value)
