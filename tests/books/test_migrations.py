"""Migrations of the book table on PostgreSQL: the library is in use meanwhile, and they can be taken back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from library_site.management.commands.migrate import ADVISORY_LOCK
from tests.support.server import copy_seeded_database, run_command
from tests.support.sql import fetch_all
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")

# The migrations that are tested follow the first one.
FIRST, *TARGETS = "0011", "0012", "0013"
# It waits for nobody.
LAST = "0015"
DESCRIBE_TABLE = """
    SELECT pg_get_indexdef(indexrelid), indisunique::text, indisvalid::text
    FROM pg_index WHERE indrelid = 'books_book'::regclass
    UNION ALL
    SELECT conname, pg_get_constraintdef(oid), convalidated::text
    FROM pg_constraint WHERE conrelid = 'books_book'::regclass
    UNION ALL
    SELECT attname, format_type(atttypid, atttypmod), attcollation::regcollation::text
    FROM pg_attribute WHERE attrelid = 'books_book'::regclass AND attnum > 0
"""
IS_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock')"
IS_WAITING_TO_REFER = IS_WAITING.replace("AccessExclusive", "ShareRowExclusive")
# As long as a request waits for a lock.
LOCK_TIMEOUT = "?options=-c%20lock_timeout%3D2s"
READ = "SELECT title FROM books_book WHERE isbn LIKE '97%' ORDER BY id LIMIT 1"
COLUMNS = "title, author, year, isbn, genre, created_at, updated_at, title_folded, author_folded, genre_folded"
ADD_BOOKS_AGAIN = f"""
    INSERT INTO books_book ({COLUMNS}) SELECT {COLUMNS} FROM books_book ON CONFLICT (isbn) DO NOTHING RETURNING id
"""  # noqa: S608  # of constants


@pytest.fixture
def database_url(tmp_path: Path) -> Iterator[str]:
    with copy_seeded_database(tmp_path) as url:
        yield url


def migrate(database_url: str, target: str, app: str = "books") -> None:
    run_command(os.environ | {"DATABASE_URL": database_url}, "migrate", "-v0", app, target)


def describe_table(database_url: str) -> list[tuple[Any, ...]]:
    return sorted(fetch_all(database_url, DESCRIBE_TABLE))


def test_migrations_let_requests_pass_and_can_be_taken_back(database_url: str) -> None:
    before = describe_table(database_url)
    migrate(database_url, FIRST)
    assert describe_table(database_url) != before
    for target in TARGETS:
        migrate_while_others_read(database_url, target)
    migrate(database_url, LAST)
    assert describe_table(database_url) == before


def test_a_migration_that_refers_to_another_table_lets_requests_pass(database_url: str) -> None:
    """One in a single transaction gives up soon, and is tried again."""
    migrate(database_url, "0013")
    with ThreadPoolExecutor(1) as pool, closing(psycopg.connect(database_url)) as writer:
        writer.execute("LOCK TABLE auth_user IN ROW EXCLUSIVE MODE")
        migration = pool.submit(migrate, database_url, "0014")
        wait_until(lambda: migration.done() or fetch_all(database_url, IS_WAITING_TO_REFER) == [(True,)])
        assert fetch_all(database_url + LOCK_TIMEOUT, "UPDATE auth_user SET is_staff = true RETURNING id") == []
        assert not migration.done()
        writer.rollback()
        migration.result()


def test_migrations_run_one_after_the_other(database_url: str) -> None:
    environment = os.environ | {"DATABASE_URL": database_url, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "migrate", "webhooks", "0005"]
    with closing(psycopg.connect(database_url)) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as migration:
            first_line = migration.stdout.readline()  # type: ignore[union-attr]
            other.close()
            output, _ = migration.communicate(timeout=30)
    assert first_line == "Another migrate changes this database. Waiting for it.\n"
    assert "Unapplying webhooks.0006_restorations... OK" in output


def migrate_while_others_read(database_url: str, target: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        with closing(psycopg.connect(database_url)) as reader:
            reader.execute("SELECT FROM books_book")
            migration = pool.submit(migrate, database_url, target)
            wait_until(lambda: migration.done() or fetch_all(database_url, IS_WAITING) == [(True,)])
            assert len(fetch_all(database_url + LOCK_TIMEOUT, READ)) == 1
            assert fetch_all(database_url + LOCK_TIMEOUT, ADD_BOOKS_AGAIN) == []
            assert not migration.done()
        migration.result()
