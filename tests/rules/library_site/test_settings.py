"""Settings come from the environment; an invalid one stops the start with a message that names it."""

import errno
import os
import re
import stat
from pathlib import Path
from unittest.mock import Mock

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from library_site.db.config import parse_database_url
from library_site.deployment import env
from tests.support.settings import ROOT, read_settings, run_checks_with

BEHIND_PROXY = {
    "HTTPS": "true",
    "DATABASE_URL": "postgresql://db.example/library",
    "PUBLIC_URL": "https://library.example",
    "ALLOWED_HOSTS": "library.example",
    "NUM_PROXIES": "1",
}


INVALID_VALUES = {
    "DEBUG": ["maybe"],
    "HTTPS": ["maybe"],
    "API_V1_RETIRED": ["perhaps"],
    "API_V1_X": ["1"],
    "SECRET_KEY": [""],
    "DATA_DIR": ["/dev/null"],
    "PORT": ["eighty", "65536", "-1"],
    "WEB_CONCURRENCY": ["0"],
    "LOG_LEVEL": ["loud"],
    "LOG_FORMAT": ["xml"],
    "API_RATE_LIMIT": ["many", "0/minute", "10/fortnight"],
    "REDIS_URL": ["http://localhost", "redis://:an/unquoted/sesame@localhost", "redis://localhost?no_such_option=1"],
    "NUM_PROXIES": ["all"],
    "HISTORY_KEPT_DAYS": ["-1"],
    "SRU_SERVERS": [
        "sru.example/{isbn}",
        "https://sru.example/?query=isbn",
        "https://sru.example:65536/{isbn}",
        "https://{isbn}.example/",
        "https://name:password@sru.example/{isbn}",
        "https://sru.example/{isbn}#x",
        "https://sru.example/{isbn}, ftp://sru.example/{isbn}",
    ],
    "LIBRARY_ACCESS": ["closed"],
    "CORS_ALLOWED_ORIGINS": ["https://app.example, *", "https://*.example"],
    "CSRF_TRUSTED_ORIGINS": ["library.example", "https://library.example/admin"],
    "HOST": ["localhost"],
    "ALLOWED_HOSTS": ["https://library.example", "library.example:443"],
    "PUBLIC_URL": ["library.example"],
    "DATABASE_URL": ["mysql://localhost/library", "no address", "postgres", "sqlite://", "sqlite:///:memory:"],
}


def test_each_invalid_value_is_a_line_that_stops_the_start() -> None:
    """What is said repeats no password, and names no database that the library does not know."""
    for number in range(max(map(len, INVALID_VALUES.values()))):
        wrong = {name: values[number] for name, values in INVALID_VALUES.items() if number < len(values)}
        lines = read_refusal(wrong)
        assert sorted(line.partition(" ")[0] for line in lines) == sorted(wrong)
        assert not re.search("sesame|oracle", "".join(lines))
    assert read_settings({"PORT": "", "DEBUG": "", "PORTS": ""})["PORT"] == 8000


def read_refusal(environment: dict[str, str]) -> list[str]:
    """Returns the lines in which these settings are refused."""
    with pytest.raises(ImproperlyConfigured) as refusal:
        read_settings(environment)
    return str(refusal.value).splitlines()


def test_a_folder_that_others_own_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", raise_permission_error)
    with pytest.raises(ImproperlyConfigured, match=r"^SECRET_KEY is not set, and .* cannot be read: Permission denied"):
        read_settings({"SECRET_KEY": "", "DATA_DIR": str(tmp_path), "DATABASE_URL": f"sqlite:///{tmp_path}/x"})


def raise_permission_error(path: Path) -> str:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def test_origins_are_as_browsers_send_them() -> None:
    written = "https://Library.Example/, http://a.example:80, https://a.example:80, https://b.example:443"
    sent = ["https://library.example", "http://a.example", "https://a.example:80", "https://b.example"]
    assert read_settings({"CORS_ALLOWED_ORIGINS": written})["CORS_ALLOWED_ORIGINS"] == sent
    pattern = {"CSRF_TRUSTED_ORIGINS": "https://*.Example/"}
    assert read_settings(pattern)["CSRF_TRUSTED_ORIGINS"] == ["https://*.example"]


MISSPELT_NAMES = {
    "LIBRARY_ACESS": "LIBRARY_ACCESS",
    "API_RATELIMIT": "API_RATE_LIMIT",
    "ALLOWED_HOST": "ALLOWED_HOSTS",
    "SECRET_KEY_FALLBACK": "SECRET_KEY_FALLBACKS",
    "DATABASE_URI": "DATABASE_URL",
    "HTTP": "HTTPS",
    # Names of other programs.
    "EMAIL_USE_SSL": "",
    "REDIS_PASSWORD": "REDIS_URL",
    "WEB_WORKERS": "",
}


def test_a_misspelt_name_stops_the_start() -> None:
    lines = read_refusal(dict.fromkeys(MISSPELT_NAMES, "protected"))
    for name, meant in MISSPELT_NAMES.items():
        assert any(line.startswith(f"{name} is no setting. Did you mean {meant}") for line in lines), name


def test_no_variable_becomes_a_header_of_every_request() -> None:
    """Such a key would make every caller its owner."""
    names = ["CONTENT_LENGTH", "CONTENT_TYPE", "HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_PROXY_AUTHORIZATION"]
    wrong = dict.fromkeys(names, "x")
    assert read_refusal({**wrong, "HTTP_HOST": ""}) == [
        f"{name} would be a header of every request, as if its client had sent it. Unset it." for name in sorted(wrong)
    ]


def test_a_refusal_names_who_may_have_set_the_variable() -> None:
    service = {"HEALTH_PORT": "tcp://10.0.0.1:80", "EMAIL_PORT": "udp://10.0.0.1:25", "HTTP_PORT": "tcp://10.0.0.1:80"}
    others = {"HOST": "laptop", "GZIP": "-9", "DEBUG": "*", "PORT": "eighty"}
    lines = {line.partition(" ")[0]: line for line in read_refusal({**service, **others})}
    assert {name for name, line in lines.items() if line.endswith("`enableServiceLinks: false`.")} == service.keys()
    assert {name for name, line in lines.items() if f"`env -u {name}` " in line} == {"HOST", "GZIP", "DEBUG"}


def test_port_465_has_tls_from_the_first_byte() -> None:
    """With both, Django sends no mail."""
    for environment, expected in (
        ({"EMAIL_PORT": "465"}, (True, False)),
        ({"EMAIL_PORT": "465", "EMAIL_USE_TLS": "true"}, (True, False)),
        ({"EMAIL_PORT": "587", "EMAIL_USE_TLS": "true"}, (False, True)),
        ({}, (False, False)),
    ):
        values = read_settings(environment)
        assert (values["EMAIL_USE_SSL"], values["EMAIL_USE_TLS"]) == expected, environment


def test_variables_of_other_programs_are_left_alone() -> None:
    names = ("PGPORT", "PGHOST", "HOSTNAME", "HTTPS_PROXY", "HTTP_PROXY", "LOGNAME", "DEBUGINFOD_URLS", "NOTIFY_SOCKET")
    assert read_settings(dict.fromkeys(names, "1"))["PORT"] == 8000


@pytest.mark.parametrize("call", [["manage.py", "serve"], ["manage.py", "deploy"], ["uwsgi"]])
def test_without_a_secret_key_the_library_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: list[str]
) -> None:
    """In any server: each of its processes would make up a key of its own."""
    monkeypatch.setattr("sys.argv", call)
    database = f"sqlite:///{tmp_path}/library.sqlite3"
    with pytest.raises(ImproperlyConfigured, match=r"^SECRET_KEY is not set"):
        read_settings({"SECRET_KEY": "", "DATA_DIR": str(tmp_path), "DATABASE_URL": database})


def test_the_secret_key_of_make_run_is_found(tmp_path: Path) -> None:
    (tmp_path / "secret_key").write_text("made once\n")
    assert env.secret_key("NO_SUCH_KEY", tmp_path / "secret_key", may_be_missing=False) == "made once"


def test_an_empty_file_of_a_secret_is_not_replaced(tmp_path: Path) -> None:
    """The library would make another key, or begin with an empty database."""
    file = tmp_path / "secret_key"
    for content, reason in ((b" \n", "it is empty"), (b"\xff", "it is not UTF-8")):
        file.write_bytes(content)
        for name in ("SECRET_KEY_FILE", "DATABASE_URL_FILE"):
            with pytest.raises(ImproperlyConfigured, match=f"^{name} is {file}, which cannot be read: {reason}"):
                read_settings({name.removesuffix("_FILE"): "", name: str(file), "SET_UP": "true"})
        with pytest.raises(ImproperlyConfigured, match=f"^SECRET_KEY is not set, and {file} cannot be read: {reason}"):
            read_settings({"SECRET_KEY": "", "DATA_DIR": str(tmp_path), "SET_UP": "true"})


def test_only_debug_generates_a_key(tmp_path: Path) -> None:
    keys = {env.secret_key("NO_SUCH_KEY", tmp_path / "secret_key", may_be_missing=True) for _ in range(2)}
    assert len(keys) == 2


def test_a_relative_file_of_sqlite_is_in_the_folder_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_database_url("sqlite:///.data/library.sqlite3")["NAME"] == f"{ROOT}/.data/library.sqlite3"


TCP_LIMITS = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 15_000,
}


def test_postgresql_is_read_from_its_address() -> None:
    settings = parse_database_url("postgresql://keeper:s%40fe@db.example:5433/library?sslmode=require")
    expected = {"HOST": "db.example", "PORT": 5433, "USER": "keeper", "PASSWORD": "s@fe", "NAME": "library"}
    assert {name: settings[name] for name in expected} == expected
    assert settings["ENGINE"] == "library_site.db.postgresql"
    assert settings["OPTIONS"] == TCP_LIMITS | {"sslmode": "require", "application_name": "library-command"}
    assert settings["CONN_MAX_AGE"] is None
    assert settings["DISABLE_SERVER_SIDE_CURSORS"]


def test_the_address_of_postgresql_has_the_last_word() -> None:
    timeouts = {"lock_timeout": 2, "statement_timeout": 0}
    defaults = TCP_LIMITS | {"application_name": "library-web", "options": "-c jit=off -c lock_timeout=2s"}
    changes: dict[str, dict[str, object]] = {
        "": {},
        "?connect_timeout=9&keepalives_idle=60&tcp_user_timeout=0": {
            "connect_timeout": 9,
            "keepalives_idle": 60,
            "tcp_user_timeout": 0,
        },
        "?application_name=mine&options=-c%20lock_timeout%3D5s": {
            "application_name": "mine",
            "options": "-c jit=off -c lock_timeout=2s -c lock_timeout=5s",
        },
    }
    for query, change in changes.items():
        settings = parse_database_url(f"postgresql://db.example/library{query}", "web", timeouts)
        assert settings["OPTIONS"] == defaults | change


# Settings that are dangerous together or each by itself, and the checks that say so.
DANGERS: list[tuple[dict[str, str], set[str]]] = [
    (
        {"DEBUG": "true", "ALLOWED_HOSTS": "library.example", "WEBHOOKS_ALLOW_PRIVATE": "true"},
        {"library_site.W001", "library_site.W004"},
    ),
    (
        {"HOST": "0.0.0.0", "API_RATE_LIMIT": "600/minute", "ALLOWED_HOSTS": "*", "LIBRARY_ACCESS": "open"},
        {"library_site.W002", "library_site.W003", "library_site.W007", "oauth.W002"},
    ),
    (
        {"SECRET_KEY": "x", "API_V1_SUNSET_ON": "2026-12-31", "HEALTH_PORT": "8000", "NUM_PROXIES": "1"},
        {"library_site.E002", "library_site.E001", "library_site.E005", "library_site.W012"},
    ),
    (
        {"EMAIL_HOST": "mail.example", "EMAIL_FROM": "nobody", "EMAIL_HOST_USER": "library"},
        {"library_site.W016", "library_site.W019"},
    ),
    (
        {"EMAIL_HOST": "mail.example", "SECRET_KEY_FALLBACKS": "x"},
        {"library_site.W016", "library_site.E002"},
    ),
    ({"PUBLIC_URL": "https://library.example"}, {"library_site.W006"}),
    ({"REDIS_URL": "redis://localhost"}, {"library_site.W010"}),
    ({**BEHIND_PROXY, "NUM_PROXIES": "0"}, {"library_site.W006"}),
    ({**BEHIND_PROXY, "PUBLIC_URL": "http://library.example"}, {"library_site.W008"}),
    ({**BEHIND_PROXY, "PUBLIC_URL": "https://books.example:8443"}, {"library_site.W009"}),
]


def test_a_dangerous_setting_is_reported_with_a_hint() -> None:
    for environment, expected in DANGERS:
        messages = run_checks_with(environment)
        assert {name for name in expected if name in messages and messages[name].hint} == expected, environment


@pytest.mark.parametrize(
    "environment",
    [
        {"API_RATE_LIMIT": "600/minute", "WEB_CONCURRENCY": "1", "WEBHOOKS_ALLOW_PRIVATE": "true"},
        {"PORT": "65535", "SECRET_KEY": "k" * 32},
        {"DEBUG": "true", "SECRET_KEY": "x", "EMAIL_FROM": "nobody", "HEALTH_PORT": "8001"},
        BEHIND_PROXY,
        {
            **BEHIND_PROXY,
            "ALLOWED_HOSTS": ".example",
            "API_RATE_LIMIT": "9/second",
            "REDIS_URL": "redis://localhost",
            "EMAIL_HOST": "mail.example",
            "EMAIL_FROM": "The library <desk@library.example>",
            "EMAIL_HOST_USER": "library",
            "EMAIL_PORT": "465",
        },
        {"EMAIL_HOST": "localhost", "EMAIL_FROM": "desk@library.example", "EMAIL_HOST_USER": "library"},
    ],
)
def test_what_is_not_dangerous_is_not_reported(environment: dict[str, str]) -> None:
    assert run_checks_with({"LIBRARY_ACCESS": "protected", **environment}) == {}


def test_the_deployment_check_says_what_a_proxy_must_do(settings: Settings) -> None:
    hints = []
    for proxies in (0, 1):
        settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
        messages = run_checks(include_deployment_checks=True)
        hints.append([str(message.hint) for message in messages if message.id == "library_site.I001"])
    without_proxy, [hint] = hints
    assert without_proxy == []
    # The headers to drop.
    assert "underscore" in hint


def test_a_rate_is_a_number_of_requests_in_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    for rate, seconds in (("5/second", 1), ("5/Minutes", 60), ("5/2hours", 7200), ("5/day", 86400)):
        monkeypatch.setenv("API_RATE_LIMIT", rate)
        assert env.rate("API_RATE_LIMIT") == (5, seconds)


def test_a_folder_for_data_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "var" / "library"
    environment = {"DATA_DIR": str(folder), "DATABASE_URL": f"sqlite:///{folder}/library.sqlite3"}
    values = read_settings({**environment, "OAUTH_JWKS_FILE": ""})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (values["STATIC_ROOT"], values["OAUTH_JWKS_FILE"]) == (folder / "static", folder / "jwks.json")
    assert read_settings({"STATIC_ROOT": "/srv/static"})["STATIC_ROOT"] == Path("/srv/static")


@pytest.mark.parametrize(("name", "value"), [("DATA_DIR", "{folder}"), ("HTTPS", "ON")])
def test_a_deployed_library_has_no_default_database(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"^DATABASE_URL is not set, and with {name} it has no default: "):
        read_settings({name: value.format(folder=tmp_path), "DATABASE_URL": " "})
    assert [*tmp_path.iterdir()] == []


def test_a_checkout_without_settings_has_sqlite() -> None:
    database = read_settings({"HTTPS": "false", "DATA_DIR": "", "DATABASE_URL": ""})["DATABASES"]["default"]
    assert (database["ENGINE"], database["NAME"]) == ("library_site.db.sqlite", f"{ROOT}/.data/library.sqlite3")


def test_a_folder_that_cannot_be_created_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ImproperlyConfigured, match=r"^DATA_DIR is .*cannot be created: Not a directory"):
        read_settings({"DATA_DIR": f"{tmp_path}/file/library"})


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL"])
def test_a_secret_can_be_in_a_file(tmp_path: Path, name: str) -> None:
    (file := tmp_path / "secret").write_text("sqlite:////somewhere/a-secret-of-more-than-32-characters\n")
    values = read_settings({"SECRET_KEY": "", f"{name}_FILE": str(file), **ANOTHER_KEY[name]})
    read = values["SECRET_KEY"] if name == "SECRET_KEY" else f"sqlite:///{values['DATABASES']['default']['NAME']}"
    assert read == "sqlite:////somewhere/a-secret-of-more-than-32-characters"
    twice = read_refusal({**ANOTHER_KEY[name], f"{name}_FILE": str(file), name: "sqlite:////mine"})
    assert twice == [f"{name}_FILE is set, and so is {name}. Remove one of them."]
    with pytest.raises(ImproperlyConfigured) as refusal:
        read_settings({"SECRET_KEY": "", "DATA_DIR": str(tmp_path), f"{name}_FILE": "/no/file", **ANOTHER_KEY[name]})
    lines = [line for line in str(refusal.value).splitlines() if name in line]
    assert lines == [f"{name}_FILE is /no/file, which cannot be read: No such file or directory."]


ANOTHER_KEY = {"SECRET_KEY": {"DATABASE_URL": "sqlite:////elsewhere"}, "DATABASE_URL": {"SECRET_KEY": "k" * 32}}


def test_a_wrong_address_of_the_database_is_refused_in_our_words() -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL takes sqlite:///file or postgresql://"):
        read_settings({"DATABASE_URL": "postgres"})
    with pytest.raises(ImproperlyConfigured, match="sslmod"):
        read_settings({"DATABASE_URL": "postgresql://db.example/library?sslmod=require"})


def test_a_setting_without_its_package_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    for exception in (None, ModuleNotFoundError()):
        monkeypatch.setattr(env, "find_spec", Mock(side_effect=exception, return_value=None))
        with pytest.raises(ImproperlyConfigured, match=r"^SENTRY_DSN needs packages: .*requirements/optional.txt$"):
            read_settings({"SENTRY_DSN": "https://open-sesame@errors.example/1"})
