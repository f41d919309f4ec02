"""A library of the last release keeps its rows, and has the tables of a new one after `migrate`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from library_site.db import online_ddl
from library_site.db.checks import list_unapplied_migrations
from library_site.deployment.releases import RELEASES
from library_site.monitoring.readiness import check_database
from tests.support.last_release import build_queries, read_rows, restore_last_release
from tests.support.server import copy_migrated_database, get_database_name, is_sqlite
from tests.support.sql import fetch_all

DESCRIBE_POSTGRESQL = """
    SELECT 'column', attrelid::regclass::text, attnum::text, attname::text, format_type(atttypid, atttypmod),
        concat_ws(' ', attcollation::regcollation, attnotnull, attidentity, pg_get_expr(adbin, adrelid))
    FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated::text, ''
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'index', indrelid::regclass::text, '', pg_get_indexdef(indexrelid), indisvalid::text, ''
    FROM pg_index WHERE indrelid::regclass::text !~ '[.]'
    UNION ALL
    SELECT 'sequence', seqrelid::regclass::text, seqtypid::regtype::text, seqstart::text, '', '' FROM pg_sequence
    UNION ALL
    SELECT 'trigger', tgrelid::regclass::text, pg_get_triggerdef(oid), '', '', '' FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'extension', extname, '', '', '', '' FROM pg_extension
"""
DESCRIBE_SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"
# What SQLite reads as the same: quotes, parentheses, and that a column may be null.
NOISE = re.compile(r'["()]|(?<!NOT)(?<!IS) NULL\b|\s(?=\s)')
# Libraries that began before the migrations were squashed lack this check.
NEW_CHECK = "parameters text CHECK JSON_VALIDparameters OR parameters IS NULL"


def describe_schema(url: str) -> list[tuple[Any, ...]]:
    if not is_sqlite():
        return sorted(fetch_all(url, DESCRIBE_POSTGRESQL))
    rows = fetch_all(url, DESCRIBE_SQLITE)
    return sorted((*names, normalize(sql)) for *names, sql in rows)


def normalize(sql: str) -> str:
    return NOISE.sub("", sql.replace("\n", " ")).replace(NEW_CHECK, "parameters text").strip()


FORGET = "DELETE FROM django_migrations WHERE app = 'books' AND name = '0023_operation_results'"


@pytest.fixture
def new_library(tmp_path: Path, transactional_db: None) -> Iterator[str]:
    with copy_migrated_database(tmp_path) as url:
        yield url


@pytest.fixture
def new_schema(new_library: str) -> list[tuple[Any, ...]]:
    return describe_schema(new_library)


@pytest.fixture
def last_release(new_library: str, new_schema: list[tuple[Any, ...]]) -> Iterator[str]:
    """This process uses the database of the last release, which takes the place of the new one."""
    restore_last_release(new_library)
    with pytest.MonkeyPatch.context() as patch:
        # Autovacuum has a table now and then.
        patch.setattr(online_ddl, "DDL_RETRY_INTERVAL", 0.01)
        connection.close()
        patch.setitem(connection.settings_dict, "NAME", get_database_name(new_library))
        yield new_library
        connection.close()


def test_a_filled_library_of_each_release_is_upgraded(last_release: str, new_schema: list[tuple[Any, ...]]) -> None:
    kept: list[tuple[Any, Any]] = []
    for release in RELEASES[:-1]:
        if kept:
            MigrationExecutor(connection).migrate([*release.last_migrations.items()])
        queries = build_queries(last_release)
        kept.append((queries, read_rows(last_release, queries)))
    assert sum(len(found) == 1 for found in kept[0][1].values()) > 30
    call_command("migrate", verbosity=0)
    assert list_unapplied_migrations(connection) == []
    for queries, rows in kept:
        after = read_rows(last_release, queries)
        assert {table: [row for row in after[table] if row in rows[table]] for table in rows} == rows
    assert describe_schema(last_release) == new_schema
    # A book that the last release copied can be deleted.
    with connection.cursor() as cursor:
        for table in ("books_book", "webhooks_received", "webhooks_sourcesecret", "webhooks_source"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608  # our own tables
    assert fetch_all(last_release, "SELECT count(*) FROM books_mirroredbook") == [(1,)]


def test_an_upgrade_that_stopped_in_the_middle_is_refused(last_release: str) -> None:
    """Django would report that there is nothing to do."""
    fetch_all(last_release, FORGET)
    queries = build_queries(last_release)
    rows = read_rows(last_release, queries)
    squashed = "books.0001_squashed_0023_operation_results"
    assert (list_unapplied_migrations(connection)[0], check_database()["migrations"]) == (squashed, False)
    with pytest.raises(CommandError, match=f"only some of the migrations that {squashed} replaces"):
        call_command("migrate", verbosity=0)
    assert read_rows(last_release, queries) == rows
