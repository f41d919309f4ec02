"""`migrate` on PostgreSQL lets requests pass and runs once at a time; of many first starts one creates the keys."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from library_site.management.commands.migrate import ADVISORY_LOCK
from tests.support.forked_commands import run_forked
from tests.support.server import build_database_url, copy_seeded_database, create_database, drop_database, run_command
from tests.support.sql import fetch_all
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")

IS_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND mode = 'ShareRowExclusiveLock')"
FORGET = "DELETE FROM django_migrations WHERE app = 'books' AND name = '0023_operation_results' RETURNING id"
REMEMBER = "INSERT INTO django_migrations (app, name, applied) VALUES ('books', '0023_operation_results', now())"
# As the first start on another machine begins.
CREATE = """
    CREATE TABLE django_migrations (id serial, app text, name text, applied timestamptz);
    INSERT INTO django_migrations (app, name, applied) VALUES ('auth', '0001_initial', now())
"""
HAS_ASKED = """
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE '%pg_try_advisory_lock%' AND pid <> pg_backend_pid()
    )
"""
# As long as a request waits for a lock.
LOCK_TIMEOUT = "?options=-c%20lock_timeout%3D2s"


@pytest.fixture
def database_url(tmp_path: Path) -> Iterator[str]:
    with copy_seeded_database(tmp_path) as url:
        yield url


def migrate(database_url: str, *target: str) -> None:
    run_command(os.environ | {"DATABASE_URL": database_url}, "migrate", "-v0", *target)


def test_a_migration_that_refers_to_another_table_lets_requests_pass(database_url: str) -> None:
    """One in a single transaction gives up soon, and is tried again."""
    migrate(database_url, "admin", "zero")
    with ThreadPoolExecutor(1) as pool, closing(psycopg.connect(database_url)) as writer:
        writer.execute("LOCK TABLE auth_user IN ROW EXCLUSIVE MODE")
        migration = pool.submit(migrate, database_url, "admin")
        wait_until(lambda: migration.done() or fetch_all(database_url, IS_WAITING) == [(True,)])
        assert fetch_all(database_url + LOCK_TIMEOUT, "UPDATE auth_user SET is_staff = true RETURNING id") == []
        assert not migration.done()
        writer.rollback()
        migration.result()


def run_after_another(database_url: str, statement: str, environment: Mapping[str, str], *command: str) -> Any:
    """Runs the command while another `migrate` has the lock, which executes the statement before it ends."""
    with ThreadPoolExecutor(1) as pool, closing(psycopg.connect(database_url, autocommit=True)) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        run = pool.submit(run_forked, {**environment, "DATABASE_URL": database_url}, *command)
        wait_until(lambda: run.done() or fetch_all(database_url, HAS_ASKED) == [(True,)])
        other.execute(statement)
        other.close()
        return run.result()


def test_migrations_run_one_after_the_other(database_url: str) -> None:
    """What the first one records row by row, the second one sees when it is complete."""
    assert len(fetch_all(database_url, FORGET)) == 1
    run = run_after_another(database_url, REMEMBER, os.environ, "migrate", "sessions", "zero")
    assert run.stdout.startswith("Another migrate changes this database. Waiting for it.\n")
    assert "Unapplying sessions.0001_initial... OK" in run.stdout


@pytest.mark.django_db
def test_a_first_start_after_another_asks_for_its_keys(tmp_path: Path) -> None:
    """On another machine, with a folder of its own."""
    name = create_database("CREATE DATABASE {}")
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment |= {"DATA_DIR": str(tmp_path), "SET_UP": "true"}
    try:
        run = run_after_another(build_database_url(name), CREATE, environment, "deploy", "--skip-checks")
    finally:
        drop_database(name)
    assert (run.returncode, list(tmp_path.glob("*key*")), list(tmp_path.glob("jwks*"))) == (1, [], [])
    assert "The library has a database already, and no keys in" in run.stderr
