"""/livez and /readyz: what they answer, to whom, and what is wrong when they answer 503."""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from django.db import connection
from pytest_django import Settings

from library_site.monitoring.listener import start_listener
from library_site.monitoring.readiness import Readiness, Results, readiness

ALL_PASSED = {"database_server": True, "database": True, "migrations": True, "signing_key": True}
PROBES = ["/livez", "/readyz"]


@pytest.fixture(autouse=True)
def forget_results(db: None) -> None:
    readiness.shared_run.run, readiness.was_ready = None, True


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
    assert {answer.headers["Content-Type"] for answer in (alive, ready)} == {"application/json"}


@pytest.mark.parametrize("address", PROBES)
def test_probes_are_for_anybody(
    api: httpx.Client, settings: Settings, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    """Without a check of the host, a redirect to HTTPS, an id or a line in the log."""
    settings.SECURE_SSL_REDIRECT = True
    caplog.set_level("INFO", "library_site")
    answer = api.get(address, headers={"Host": "evil.example"})
    assert answer.status_code == 200
    assert "X-Request-ID" not in answer.headers
    assert caplog.records == []


@pytest.mark.parametrize("address", PROBES)
def test_probes_have_two_methods(api: httpx.Client, address: str) -> None:
    head, post = api.head(address), api.post(address, json={})
    assert (head.status_code, head.content, int(head.headers["Content-Length"]) > 10) == (200, b"", True)
    assert (post.status_code, post.headers["Allow"]) == (405, "GET, HEAD")


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
    answer = api.get("/readyz")
    assert (answer.status_code, answer.headers["Retry-After"], answer.json()["status"]) == (503, "1", "unavailable")
    assert answer.json()["checks"] == {name: "unavailable" if name in failed else "ok" for name in ALL_PASSED}
    assert api.get("/livez").status_code == 200
    assert caplog.messages == [f"Not ready: {', '.join(failed)}"]


def test_a_missing_signing_key_is_not_ready(api: httpx.Client, settings: Settings) -> None:
    settings.READINESS_CHECKS = {"signing_key": "tests.library_site.monitoring.test_probes.raise_error"}
    answer = api.get("/readyz")
    assert (answer.status_code, answer.json()["checks"]["signing_key"]) == (503, "unavailable")
    assert "secret path" not in answer.text


def raise_error() -> None:
    raise FileNotFoundError("secret path")


class SlowChecks:
    """Checks that take until they are released."""

    def __init__(self) -> None:
        self.released, self.runs = Event(), 0

    def __call__(self) -> Results:
        self.runs += 1
        self.released.wait()
        return ALL_PASSED


@pytest.mark.database_independent
def test_checks_that_hang_count_as_failed_and_do_not_pile_up(caplog: pytest.LogCaptureFixture) -> None:
    checks = SlowChecks()
    patient = Readiness(checks, timeout=0.01)
    for _ in range(3):
        assert set(patient.get_results().values()) == {False}
        # As if the result were too old to be given again.
        patient.shared_run.began_at -= 10
    assert checks.runs == 1
    checks.released.set()
    assert patient.shared_run.run
    patient.shared_run.run.result()
    assert patient.get_results() == ALL_PASSED
    assert [message.partition(":")[0] for message in caplog.messages] == ["Not ready", "Ready again."]


@pytest.mark.database_independent
def test_a_result_is_kept_for_a_second() -> None:
    checks = SlowChecks()
    checks.released.set()
    busy = Readiness(checks)
    assert [busy.get_results() for _ in range(5)] == [ALL_PASSED] * 5
    assert checks.runs == 1
    busy.shared_run.began_at = time.monotonic() - 1.1
    busy.get_results()
    assert checks.runs == 2


@pytest.fixture
def listener_url() -> Iterator[str]:
    with start_listener("127.0.0.1", 0) as listener:
        yield f"http://127.0.0.1:{listener.server_port}"
        listener.shutdown()


@pytest.mark.database_independent
def test_the_other_port_answers_probes_alone(listener_url: str, capfd: pytest.CaptureFixture[str]) -> None:
    addresses = [*PROBES, "/", "/api/books"]
    answers = [httpx.get(listener_url + address, headers={"Host": "evil.example"}) for address in addresses]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 404]
    assert answers[1].json() == {"status": "ok", "checks": dict.fromkeys(ALL_PASSED, "ok")}
    assert capfd.readouterr().err == ""
