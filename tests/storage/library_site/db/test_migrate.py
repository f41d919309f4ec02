"""`migrate` on PostgreSQL lets requests pass and runs once at a time; of many first starts one creates the keys."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

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


def test_migrations_run_one_after_the_other(database_url: str) -> None:
    """What the first one records row by row, the second one sees when it is complete."""
    environment = os.environ | {"DATABASE_URL": database_url, "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "manage.py", "migrate", "sessions", "zero"]
    with closing(psycopg.connect(database_url)) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [ADVISORY_LOCK])
        assert len(fetch_all(database_url, FORGET)) == 1
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as migration:
            first_line = migration.stdout.readline()  # type: ignore[union-attr]
            fetch_all(database_url, REMEMBER)
            other.close()
            output, _ = migration.communicate(timeout=30)
    assert first_line == "Another migrate changes this database. Waiting for it.\n"
    assert "Unapplying sessions.0001_initial... OK" in output


# First starts


@pytest.mark.django_db
def test_one_creates_the_keys_and_the_others_ask_for_them(tmp_path: Path) -> None:
    name = create_database("CREATE DATABASE {}")
    folders = [tmp_path / "one", tmp_path / "other"]

    def deploy(folder: Path) -> "CompletedProcess[str]":
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment |= {"DATA_DIR": str(folder), "DATABASE_URL": build_database_url(name), "SET_UP": "true"}
        return run_forked(environment, "deploy", "--skip-checks")

    try:
        with ThreadPoolExecutor(2) as pool:
            starts = list(pool.map(deploy, folders))
    finally:
        drop_database(name)
    errors = "".join(start.stderr for start in starts)
    assert sorted(start.returncode for start in starts) == [0, 1], errors
    assert "The library has a database already, and no keys in" in errors
    assert sorted((folder / "jwks.json").exists() for folder in folders) == [False, True]
