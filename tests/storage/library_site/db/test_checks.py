"""The checks of the database at the start of the server and of a worker."""

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


def test_migrations_that_are_not_applied_stop_the_start() -> None:
    assert not list(checks.iter_unapplied_migrations(connection))
    MigrationRecorder(connection).record_unapplied("sessions", "0001_initial")
    [error] = checks.iter_unapplied_migrations(connection)
    assert (error.is_serious(), error.id) == (True, "library_site.E003")
    assert "the first of them sessions.0001_initial" in error.msg


# Settings that lead to no database, and what is said of each.
UNREACHABLE = {
    "sqlite": [({"NAME": "/nowhere/x"}, "unable to open database file")],
    "postgresql": [
        ({"HOST": "127.0.0.1", "PORT": "1"}, "Connection refused"),
        ({"NAME": "/nowhere/x"}, 'database "/nowhere/x" does not exist'),
    ],
}


@pytest.mark.parametrize(("changed", "reason"), UNREACHABLE[connection.vendor])
def test_a_database_that_does_not_answer_is_reported_and_stops_no_command(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str], reason: str
) -> None:
    for name, value in changed.items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    message = run_checks_by_id()["library_site.W013"].msg
    assert (reason in message, "\n" in message) == (True, False)
    settings.LIBRARY_PROCESS = "command"
    assert run_checks_by_id() == {}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no limit")
def test_threads_beyond_the_connections_of_postgresql_are_reported(settings: Settings) -> None:
    settings.WEB_CONCURRENCY, settings.WEB_THREADS = 4, 100
    assert "needs 400 connections" in run_checks_by_id()["library_site.W014"].msg
