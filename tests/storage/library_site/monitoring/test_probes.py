"""/livez and /readyz: what they answer, to whom, and what is wrong when they answer 503."""

import time
from collections.abc import Iterator
from contextlib import closing
from math import inf
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import httpx
import pytest
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from psycopg import OperationalError as PsycopgOperationalError
from psycopg.errors import ConnectionTimeout, UndefinedTable
from pytest_django import Settings

from library_site.db.hangs import DatabaseHangs, server_state
from library_site.db.migration_state import has_all_migrations, list_migrations
from library_site.monitoring import readiness as readiness_module
from library_site.monitoring.listener import start_listener
from library_site.monitoring.readiness import (
    DATABASE_CHECKS,
    SERVED_LIFETIME,
    Readiness,
    Results,
    SharedRun,
    check_database,
    is_server_running,
    readiness,
)

ALL_PASSED = {"database_server": True, "database": True, "migrations": True, "signing_key": True}
PROBES = ["/livez", "/readyz"]


@pytest.fixture(autouse=True)
def forget_results(db: None) -> None:
    readiness.runs.clear()
    readiness.was_ready = True
    server_state.answered_at = -inf


@pytest.fixture
def databases(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Settings that lead to a database that is not as it should be, by what is wrong."""
    if connection.vendor == "sqlite":
        (tmp_path / "empty.sqlite3").touch()
        names = {"unreachable": "away/library", "missing": "library", "unmigrated": "empty.sqlite3"}
        return {problem: {"NAME": str(tmp_path / name)} for problem, name in names.items()}
    return {
        "unreachable": {"HOST": str(tmp_path)},
        "missing": {"NAME": "no_such_database"},
        "unmigrated": {"NAME": "template1"},
    }


def test_a_library_that_answers_says_so(api: httpx.Client) -> None:
    alive, ready = (api.get(address) for address in PROBES)
    assert (alive.status_code, alive.json()) == (200, {"status": "ok", "checks": {}})
    assert (ready.status_code, ready.json()) == (200, {"status": "ok", "checks": dict.fromkeys(ALL_PASSED, "ok")})
    assert {response.headers["Content-Type"] for response in (alive, ready)} == {"application/json"}


def test_probes_are_for_anybody_and_have_two_methods(
    api: httpx.Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a check of the host, a redirect to HTTPS, an id or a line in the log."""
    settings.SECURE_SSL_REDIRECT = True
    caplog.set_level("INFO", "library_site")
    for address in PROBES:
        response = api.get(address, headers={"Host": "evil.example"})
        assert (response.status_code, "X-Request-ID" in response.headers) == (200, False)
        head, post = api.head(address), api.post(address, json={})
        assert (head.status_code, head.content, int(head.headers["Content-Length"]) > 10) == (200, b"", True)
        assert (post.status_code, post.headers["Allow"]) == (405, "GET, HEAD")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("problem", "failed"),
    [
        ("unreachable", ["database_server", "database", "migrations"]),
        ("missing", ["database", "migrations"]),
        ("unmigrated", ["migrations"]),
    ],
)
def test_a_database_that_is_not_as_it_should_be_has_its_name(
    api: httpx.Client,
    databases: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    problem: str,
    failed: list[str],
) -> None:
    for name, value in databases[problem].items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    response = api.get("/readyz")
    status = response.json()["status"]
    assert (response.status_code, response.headers["Retry-After"], status) == (503, "1", "unavailable")
    assert response.json()["checks"] == {name: "unavailable" if name in failed else "ok" for name in ALL_PASSED}
    assert api.get("/livez").status_code == 200
    assert caplog.messages == [f"Not ready: {', '.join(failed)}"]


def test_a_database_of_a_newer_release_is_ready(transactional_db: None, api: httpx.Client) -> None:
    """During an upgrade the old processes go on, and must get requests."""
    recorder, newer = MigrationRecorder(connection), ("books", "9999_of_a_newer_release")
    recorder.record_applied(*newer)
    try:
        response = api.get("/readyz")
    finally:
        recorder.record_unapplied(*newer)
    assert (response.status_code, response.json()["checks"]["migrations"]) == (200, "ok")


def test_a_database_of_the_last_release_is_ready() -> None:
    """It has all that a migration replaces, and not its name yet."""
    replaced = {row for rows in list_migrations().values() for row in rows}
    assert has_all_migrations(replaced)
    assert not has_all_migrations(replaced - {("books", "0001_books")})
    assert replaced.isdisjoint({key for key, rows in list_migrations().items() if len(rows) > 1})


def test_the_checks_of_the_database_leave_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    database = connection.copy()
    monkeypatch.setattr(connection, "copy", lambda: database)
    assert check_database()["database"]
    assert database.connection is None


def test_a_missing_signing_key_is_not_ready(api: httpx.Client, settings: Settings) -> None:
    settings.READINESS_CHECKS = {"signing_key": "tests.storage.library_site.monitoring.test_probes.raise_error"}
    response = api.get("/readyz")
    assert (response.status_code, response.json()["checks"]["signing_key"]) == (503, "unavailable")
    assert "secret path" not in response.text


def raise_error() -> None:
    raise FileNotFoundError("secret path")


class SlowCheck:
    """A check of the database that takes until it is released."""

    def __init__(self) -> None:
        self.released, self.runs = Event(), 0

    def __call__(self) -> Results:
        self.runs += 1
        self.released.wait()
        return dict.fromkeys(DATABASE_CHECKS, True)


def test_a_check_that_hangs_has_failed_alone_and_does_not_pile_up(caplog: pytest.LogCaptureFixture) -> None:
    check = SlowCheck()
    patient = Readiness(check, timeout=0.01)
    # Only the database hangs: the others have as long as they need.
    patient.add_run(("signing_key",), lambda: {"signing_key": True})
    patient.runs["signing_key",].timeout = 30
    for _ in range(3):
        assert patient.get_results() == {"signing_key": True, **dict.fromkeys(DATABASE_CHECKS, False)}
        # As if the result were too old to be given again.
        patient.runs[DATABASE_CHECKS].began_at -= 10
    assert check.runs == 1
    check.released.set()
    run = patient.runs[DATABASE_CHECKS].run
    assert run
    run.result()
    assert patient.get_results() == ALL_PASSED
    assert caplog.messages == [f"Not ready: {', '.join(DATABASE_CHECKS)}", "Ready again."]


def test_checks_run_beside_each_other() -> None:
    """One after the other, they would take longer together than one may."""
    database_began, key_began = Event(), Event()

    def check_database() -> Results:
        database_began.set()
        return dict.fromkeys(DATABASE_CHECKS, key_began.wait(30))

    def check_key() -> Results:
        key_began.set()
        return {"signing_key": database_began.wait(30)}

    both = Readiness(check_database, timeout=60)
    both.add_run(("signing_key",), check_key)
    assert both.get_results() == ALL_PASSED


def test_a_result_is_kept_for_a_second() -> None:
    check = SlowCheck()
    check.released.set()
    busy = Readiness(check)
    assert [busy.get_results() for _ in range(2)] == [ALL_PASSED] * 2
    assert check.runs == 1
    busy.runs[DATABASE_CHECKS].began_at = time.monotonic() - 1.1
    busy.get_results()
    assert check.runs == 2


def test_a_run_closes_the_connection_of_its_thread() -> None:
    def connect() -> tuple[Thread, BaseDatabaseWrapper]:
        connection.ensure_connection()
        return current_thread(), connections[DEFAULT_DB_ALIAS]

    result = SharedRun(connect, lifetime=1, timeout=30).get()
    assert result
    thread, database = result
    thread.join()
    assert database is not connections[DEFAULT_DB_ALIAS]
    assert database.connection is None


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no server that could hang")
def test_a_server_that_words_a_failure_is_running_and_one_that_hangs_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """libpq's own question would stop all threads of the process for two seconds."""
    error = OperationalError()
    for error.__cause__, is_running in ((UndefinedTable(), True), (PsycopgOperationalError(), False)):
        assert is_server_running(connection, error) == is_running
    monkeypatch.setattr(readiness_module, "pq", None)
    for error.__cause__ in (DatabaseHangs(), ConnectionTimeout()):
        assert not is_server_running(connection.copy(), error)


@pytest.fixture
def listener_url() -> Iterator[str]:
    with start_listener("127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


def test_the_other_port_answers_probes_alone(listener_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    addresses = [*PROBES, "/", "/api/books"]
    responses = [httpx.get(listener_url + address, headers={"Host": "evil.example"}) for address in addresses]
    assert [response.status_code for response in responses] == [200, 200, 404, 404]
    assert responses[1].json() == {"status": "ok", "checks": dict.fromkeys(ALL_PASSED, "ok")}
    odd = {"Content-Type": "text/plain; a*=utf-9''x"}
    methods = [httpx.request(method, listener_url + "/livez", headers=odd) for method in ("GET", "POST")]
    assert [response.status_code for response in methods] == [200, 405]
    assert capfd.readouterr().err == ""


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no connections to run out of")
def test_who_has_connections_is_ready_while_the_database_takes_no_more(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As its requests are answered. Without them it is not: they might need another connection."""
    settings.LIBRARY_PROCESS = "web"
    with closing(connection.copy()) as database, database.cursor() as cursor:
        cursor.execute("SELECT 1")

    def refuse(*_: Any, **__: Any) -> Any:
        raise OperationalError("sorry, too many clients already")

    monkeypatch.setattr(type(database), "get_new_connection", refuse)
    assert all(check_database().values())
    server_state.answered_at -= SERVED_LIFETIME
    assert check_database() == {"database_server": True, "database": False, "migrations": False}
    # A server that is gone is noticed at once.
    server_state.answered_at = time.monotonic()
    monkeypatch.setattr(readiness_module, "is_server_running", lambda *_: False)
    assert check_database() == dict.fromkeys(DATABASE_CHECKS, False)
