"""Prepared statements give their result even where the server has lost their plan."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import psycopg
import pytest
from django.db import DataError, connection, transaction
from psycopg import pq

from library_site.db.sql import PreparedStatement, check_result
from tests.support.concurrency import run_and_disconnect

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no prepared statements."),
    pytest.mark.django_db(transaction=True),
]


def test_a_lost_plan_is_prepared_again_and_does_not_abort_the_transaction() -> None:
    statement = PreparedStatement("SELECT id FROM books_book WHERE year > %s")
    for block in (transaction.atomic(), nullcontext()):
        statement.fetch_all((1,))
        with block:
            connection.cursor().execute("DEALLOCATE ALL")
            assert [statement.fetch_all((1,)) for _ in range(3)] == [[], [], []]
    assert statement.name in list_plans()


def test_a_plan_of_another_connection_does_no_harm() -> None:
    """Happens behind a connection pooler that does not track prepared statements."""
    statement = PreparedStatement("SELECT %s::bigint")
    connection.cursor().execute(f'PREPARE "{statement.name.decode()}" AS SELECT 0')
    assert statement.fetch_all((1,)) == [(1,)]


def test_a_table_may_change_between_two_calls() -> None:
    statement = PreparedStatement("SELECT number FROM pg_temp.numbers")
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE numbers AS SELECT 1 AS number")
        assert statement.fetch_all() == [(1,)]
        cursor.execute("ALTER TABLE numbers ALTER COLUMN number TYPE text")
        assert statement.fetch_all() == [("1",)]
        cursor.execute("DROP TABLE numbers")


def test_a_statement_goes_to_the_connection_of_its_thread_that_is_open_now() -> None:
    before = fetch_pid()
    connection.close()
    now = fetch_pid()
    with ThreadPoolExecutor(1) as pool:
        assert len({before, now, pool.submit(run_and_disconnect, fetch_pid).result()}) == 3


def test_the_oldest_plan_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("library_site.db.sql.MAX_PLANS", 2)
    connection.close()
    statements = [PreparedStatement(f"SELECT %s::bigint + {number}") for number in range(4)]
    expected = [[(1 + number,)] for number in range(4)]
    assert [statement.fetch_all((1,)) for statement in statements * 2] == expected * 2
    assert list_plans() == {statement.name for statement in statements[2:]}


def list_plans() -> set[bytes]:
    """The names of the statements that PostgreSQL has prepared for this connection."""
    rows = PreparedStatement("SELECT name FROM pg_prepared_statements", reuse_plan=False).fetch_all()
    return {name.encode() for (name,) in rows}


def fetch_pid() -> int:
    [(pid,)] = PreparedStatement("SELECT pg_backend_pid()").fetch_all()
    return int(pid)


def test_a_text_is_not_cut_off_at_a_nul() -> None:
    with pytest.raises(DataError):
        PreparedStatement("SELECT %s::text").fetch_all(("a\0b",))


def test_an_error_without_a_server_message_is_a_lost_connection() -> None:
    connection.ensure_connection()
    libpq = connection.connection.pgconn
    with pytest.raises(psycopg.OperationalError):
        check_result(libpq, libpq.make_empty_result(pq.ExecStatus.FATAL_ERROR))
