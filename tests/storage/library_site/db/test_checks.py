"""The checks of the database at the start of the server and of a worker."""

from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from library_site.db import checks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def web_process(settings: Settings) -> None:
    settings.LIBRARY_PROCESS, settings.LIBRARY_ACCESS = "web", "protected"


def run_checks_by_id() -> dict[str | None, CheckMessage]:
    return {message.id: message for message in run_checks()}


def test_a_library_that_is_ready_reports_nothing() -> None:
    assert run_checks_by_id() == {}


def test_missing_static_files_are_reported(settings: Settings, tmp_path: Any) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    assert run_checks_by_id().keys() == {"library_site.W011"}


def test_migrations_that_are_not_applied_stop_the_start() -> None:
    assert not list(checks.iter_unapplied_migrations(connection))
    MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    [error] = checks.iter_unapplied_migrations(connection)
    assert (error.is_serious(), error.id) == (True, "library_site.E003")
    assert "the first of them sessions.0001_initial" in error.msg


def test_a_database_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    unreachable = {"HOST": "127.0.0.1", "PORT": "1"} if connection.vendor == "postgresql" else {"NAME": "/nowhere/x"}
    for name, value in unreachable.items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    message = run_checks_by_id()["library_site.W013"]
    assert "Connection refused" in message.msg or "unable to open database file" in message.msg
    assert "\n" not in message.msg


def test_commands_start_without_a_database(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nowhere/x")
    missing = {"postgresql": 'database "/nowhere/x" does not exist', "sqlite": "unable to open database file"}
    assert missing[connection.vendor] in run_checks_by_id()["library_site.W013"].msg
    settings.LIBRARY_PROCESS = "command"
    assert run_checks_by_id() == {}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no limit")
def test_threads_beyond_the_connections_of_postgresql_are_reported(settings: Settings) -> None:
    settings.WEB_CONCURRENCY, settings.WEB_THREADS = 4, 100
    assert "needs 400 connections" in run_checks_by_id()["library_site.W014"].msg
