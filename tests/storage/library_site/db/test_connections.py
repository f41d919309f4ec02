"""What is said of a connection, and what each process of the library sets for its own."""

import os
import re
from contextlib import closing
from datetime import datetime
from unittest.mock import patch

import pytest
from django.db import connection, transaction

from library_site.db.connections import describe_database
from library_site.db.sql import fetch_all
from tests.support.settings import read_settings


@pytest.mark.usefixtures("db")
@pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite")
def test_sqlite_is_described_by_its_file() -> None:
    assert describe_database(connection) == f"SQLite, {connection.settings_dict['NAME']}"


@pytest.mark.usefixtures("db")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL")
def test_postgresql_is_described_without_a_password() -> None:
    connection.ensure_connection()
    name = connection.settings_dict["NAME"]
    assert re.fullmatch(rf"PostgreSQL, {name} at [^ :]+:[0-9]+ as [^ :]+", describe_database(connection))


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL")
def test_times_are_read_whatever_the_date_style_of_the_server() -> None:
    connection.close()
    options = connection.settings_dict["OPTIONS"]
    with patch.dict(options, options=f"{options.get('options', '')} -c datestyle=German"):
        with transaction.atomic():
            [(time, text)] = fetch_all("SELECT now(), '31.1.2026'::date::text")
            transaction.set_rollback(True)
        assert fetch_all("SHOW DateStyle") == [("ISO, DMY",)]
        connection.close()
    assert isinstance(time, datetime)
    assert text == "2026-01-31"


@pytest.mark.usefixtures("db")
@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL")
def test_only_requests_have_a_limit_and_each_process_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"DATABASE_URL": os.environ["DATABASE_URL"], "DATABASE_LOCK_TIMEOUT": "3"}
    for process, limits in (("web", ["3s", "5s"]), ("worker", ["0", "0"]), ("command", ["0", "0"])):
        settings = read_settings({**environment, "LIBRARY_PROCESS": process})
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", settings["DATABASES"]["default"]["OPTIONS"])
        shown = []
        with closing(connection.copy()) as database, database.cursor() as cursor:
            limit_names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            for name in (*limit_names, "application_name"):
                cursor.execute(f"SHOW {name}")
                shown += cursor.fetchone()
        assert shown == [*limits, "1min", f"library-{process}"], process


@pytest.mark.usefixtures("db")
def test_a_commit_returns_when_it_is_on_the_disk() -> None:
    """Otherwise a power failure could lose what was acknowledged."""
    full = {"sqlite": ("PRAGMA synchronous", 2), "postgresql": ("SHOW synchronous_commit", "on")}
    sql, value = full[connection.vendor]
    assert fetch_all(sql) == [(value,)]
