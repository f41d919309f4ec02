"""Settings come from the environment; an invalid one stops the start with a message that names it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from library_site import env
from library_site.db.config import parse_database_url
from tests.support.server import REQUIRED_SECRETS

pytestmark = pytest.mark.database_independent

ROOT = Path(__file__).parent.parent.parent


def run_check(**environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs `manage.py check` with no other environment variables than these."""
    variables = {"PATH": os.environ["PATH"], **REQUIRED_SECRETS, **environment}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "maybe"),
        ("PORT", "eighty"),
        ("PORT", "65536"),
        ("PORT", "-1"),
        ("WEB_CONCURRENCY", "0"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("API_RATE_LIMIT", "many"),
        ("API_RATE_LIMIT", "0/minute"),
        ("API_RATE_LIMIT", "10/fortnight"),
        ("REDIS_URL", "http://localhost"),
        ("REDIS_URL", "redis://:an/unquoted/password@localhost"),
        ("REDIS_URL", "redis://localhost?no_such_option=1"),
        ("NUM_PROXIES", "all"),
        ("HISTORY_KEPT_DAYS", "-1"),
        ("LIBRARY_ACCESS", "closed"),
        ("CORS_ALLOWED_ORIGINS", "https://app.example, *"),
        ("HOST", "localhost"),
        ("DATABASE_URL", "mysql://localhost/library"),
        ("DATABASE_URL", "no address"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite:///:memory:"),
    ],
)
def test_an_invalid_value_stops_the_start(name: str, value: str) -> None:
    start = run_check(**{name: value})
    assert start.returncode == 1
    assert f"ImproperlyConfigured: {name}" in start.stderr


def test_an_empty_variable_is_an_unset_one() -> None:
    assert run_check(PORT="", DATABASE_URL="", DEBUG="").returncode == 0


def test_without_a_secret_key_the_library_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ImproperlyConfigured, match="NO_SUCH_KEY is not set"):
        env.secret_key("NO_SUCH_KEY", tmp_path / "secret_key", debug=False)


def test_the_secret_key_of_make_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("made once\n")
    assert env.secret_key("NO_SUCH_KEY", tmp_path / "secret_key", debug=False) == "made once"


def test_only_debug_generates_a_key(tmp_path: Path) -> None:
    keys = {env.secret_key("NO_SUCH_KEY", tmp_path / "secret_key", debug=True) for _ in range(2)}
    assert len(keys) == 2


def test_sqlite_waits_for_locks_and_for_the_disk() -> None:
    settings = parse_database_url("sqlite:////var/lib/library.sqlite3")
    assert settings["NAME"] == "/var/lib/library.sqlite3"
    assert settings["CONN_MAX_AGE"] is None
    assert settings["OPTIONS"] == {
        "transaction_mode": "IMMEDIATE",
        "timeout": 10,
        "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
    }


def test_postgresql_is_read_from_its_address() -> None:
    settings = parse_database_url("postgresql://keeper:s%40fe@db.example:5433/library?sslmode=require")
    expected = {"HOST": "db.example", "PORT": 5433, "USER": "keeper", "PASSWORD": "s@fe", "NAME": "library"}
    assert {name: settings[name] for name in expected} == expected
    assert settings["OPTIONS"] == {"sslmode": "require", "application_name": "library-command"}
    assert settings["CONN_MAX_AGE"] is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"application_name": "library-web", "options": "-c lock_timeout=2s"}),
        (
            "?application_name=mine&options=-c%20lock_timeout%3D5s",
            {"application_name": "mine", "options": "-c lock_timeout=2s -c lock_timeout=5s"},
        ),
    ],
)
def test_the_address_of_postgresql_has_the_last_word(query: str, expected: dict[str, str]) -> None:
    timeouts = {"lock_timeout": 2, "statement_timeout": 0}
    assert parse_database_url(f"postgresql://db.example/library{query}", "web", timeouts)["OPTIONS"] == expected


def test_debug_in_public_gives_a_warning(settings: Settings) -> None:
    settings.DEBUG = True
    settings.ALLOWED_HOSTS = ["library.example"]
    assert "library_site.W001" in {message.id for message in run_checks()}


def test_passwords_without_encryption_give_a_warning(settings: Settings) -> None:
    settings.HOST = "0.0.0.0"
    assert "library_site.W002" in {message.id for message in run_checks()}


@pytest.mark.parametrize(
    ("https", "public_url", "proxies", "is_reported"),
    [
        (True, "http://127.0.0.1", 0, True),
        (False, "https://library.example", 0, True),
        (True, "https://library.example", 1, False),
        (False, "http://127.0.0.1", 0, False),
    ],
)
def test_a_proxy_that_is_not_counted_gives_a_warning(
    settings: Settings, https: bool, public_url: str, proxies: int, is_reported: bool
) -> None:
    settings.HTTPS, settings.PUBLIC_URL = https, public_url
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    assert ("library_site.W006" in {message.id for message in run_checks()}) == is_reported


@pytest.mark.parametrize("proxies", [0, 1])
def test_the_deployment_check_says_what_a_proxy_must_do(settings: Settings, proxies: int) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
    messages = {message.id: message for message in run_checks(include_deployment_checks=True)}
    assert ("library_site.I001" in messages) == bool(proxies)


def test_the_deployment_check_names_the_headers_to_drop(settings: Settings) -> None:
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": 1}
    messages = {message.id: message for message in run_checks(include_deployment_checks=True)}
    assert "underscore" in str(messages["library_site.I001"].hint)


@pytest.mark.parametrize(
    ("rate", "seconds"), [("5/second", 1), ("5/Minutes", 60), ("5/2hours", 7200), ("5/day", 86400)]
)
def test_a_rate_is_a_number_of_requests_in_a_period(monkeypatch: pytest.MonkeyPatch, rate: str, seconds: int) -> None:
    monkeypatch.setenv("API_RATE_LIMIT", rate)
    assert env.rate("API_RATE_LIMIT") == (5, seconds)


def test_a_password_in_a_bad_address_is_not_repeated() -> None:
    assert "sesame" not in run_check(REDIS_URL="redis://:sesame/@localhost").stderr


def test_a_limit_that_each_process_counts_alone_gives_a_warning(settings: Settings) -> None:
    settings.API_RATE_LIMIT = (600, 60)
    assert "library_site.W003" in {message.id for message in run_checks()}
    settings.REDIS_URL = "redis://localhost"
    assert "library_site.W003" not in {message.id for message in run_checks()}


def test_webhooks_to_private_addresses_give_a_warning_in_public(settings: Settings) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    settings.ALLOWED_HOSTS = ["library.example"]
    assert "library_site.W004" in {message.id for message in run_checks()}
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    assert "library_site.W004" not in {message.id for message in run_checks()}


def test_the_defaults_give_only_the_warning_of_open_writes(settings: Settings) -> None:
    assert [message.id for message in run_checks()] == ["oauth.W002"]
    settings.DEBUG = True
    assert "oauth.W002" not in {message.id for message in run_checks()}


@pytest.mark.parametrize("access", ["protect-writes", "protected"])
def test_writes_that_need_a_credential_give_no_warning(settings: Settings, access: str) -> None:
    settings.LIBRARY_ACCESS = access
    assert run_checks() == []
