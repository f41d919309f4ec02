"""What operators find in the log, and what nobody must find there."""

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.db import connection

from library_site.log_formatters import JSONFormatter, TextFormatter
from tests.support.books import new_book
from tests.support.logs import Log, end_worker, logged
from tests.support.serving import serving

pytestmark = pytest.mark.once

GIVEN = "Caller-1.of_2"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
SECRET = "open-sesame"  # what the test looks for
FORGED = "2026-01-31T09:30:00.000Z ERROR - books: forged"
LINE_ENDS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2K\r", "\b", "\0"]


@pytest.fixture
def text_log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    yield from logged(TextFormatter(), caplog)


@pytest.fixture
def json_log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    yield from logged(JSONFormatter(), caplog)


@pytest.fixture(scope="module")
def operators_log(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All that a library says in JSON at its most talkative, from start to stop, to requests full of secrets."""
    settings = {"LOG_FORMAT": "json", "LOG_LEVEL": "debug", "DEBUG": "true"}
    with serving(tmp_path_factory.mktemp("talkative"), **settings) as running:
        end_worker(running.process.pid)
        with running.client() as client:
            send_secrets(client)
            # An answer is logged when it is sent: by the time of this one, those before it are.
            client.get("/docs")
    _, _, log = running.log.read_text().partition("Ctrl-C stops it.\n")
    return [json.loads(line) for line in log.splitlines()]


def send_secrets(client: httpx.Client) -> None:
    client.headers["X-Request-ID"] = GIVEN
    client.cookies["sessionid"] = SECRET
    client.post("/api/books", json=new_book(isbn=SECRET))
    client.get(f"/api/books?author={SECRET}")
    client.get(f"/nowhere?code={SECRET}")
    for credential in ({"Authorization": f"Bearer {SECRET}"}, {"X-API-Key": SECRET}):
        client.get("/api/books", headers=credential)
    secrets = dict.fromkeys(("client_id", "client_secret", "refresh_token"), SECRET)
    client.post("/oauth/token", data={"grant_type": "refresh_token", **secrets})
    client.post("/admin/login/", data={"username": SECRET, "password": SECRET})
    client.get(f"/admin/login/?next={SECRET}")
    del client.headers["X-Request-ID"]


def test_an_answered_request_is_one_line(text_log: Log, api: httpx.Client) -> None:
    api.get("/api/books/0", headers={"X-Request-ID": GIVEN})
    (line,) = text_log.lines()
    assert re.fullmatch(rf"{TIME} INFO {GIVEN} library_site\.access: GET /api/books/0 404 \d+\.\d+ ms", line)


def test_an_answered_request_is_one_object(json_log: Log, api: httpx.Client) -> None:
    api.delete("/api/books/0/", headers={"X-Request-ID": GIVEN})
    (line,) = json_log.objects()
    time, duration = line.pop("time"), line.pop("duration_ms")
    assert re.fullmatch(TIME, time)
    assert 0 < duration < 60_000
    assert line == {
        "level": "INFO",
        "logger": "library_site.access",
        "message": f"DELETE /api/books/0/ 404 {duration} ms",
        "request_id": GIVEN,
        "method": "DELETE",
        "path": "/api/books/0/",
        "status": 404,
    }


@pytest.mark.parametrize(
    ("address", "status"),
    [("/", 200), ("/docs", 200), ("/static/admin/css/base.css", 200), ("/nowhere", 404), ("/admin/", 302)],
)
def test_everything_answered_is_logged(json_log: Log, api: httpx.Client, address: str, status: int) -> None:
    answer = api.get(address)
    (line,) = json_log.objects()
    assert (line["path"], line["status"]) == (address, status)
    assert line["request_id"] == answer.headers["X-Request-ID"]


def test_a_path_is_logged_as_it_came(json_log: Log, api: httpx.Client) -> None:
    api.get("/a%0D%0Ab%1B%20%22c")
    assert [line["path"] for line in json_log.objects()] == ["/a%0D%0Ab%1B%20%22c"]


def test_at_warning_requests_are_not_logged(text_log: Log, api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "library_site")
    api.get("/")
    assert text_log.lines() == []


def test_outside_of_a_request_there_is_no_id(json_log: Log, api: httpx.Client) -> None:
    api.get("/", headers={"X-Request-ID": GIVEN})
    logging.getLogger("books").warning("The shelf is full.")
    assert [line["request_id"] for line in json_log.objects()] == [GIVEN, "-"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_text_forges_a_line(text_log: Log, end: str) -> None:
    logging.getLogger("books").warning("read %s", f"é{end}{FORGED}")
    (line,) = text_log.lines()
    assert line.isprintable()
    assert "read é\\" in line


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_text_forges_an_object(json_log: Log, end: str) -> None:
    logging.getLogger("books").warning("read %s", f"é\ud800{end}{FORGED}")
    assert [line["message"] for line in json_log.objects()] == [f"read é\ud800{end}{FORGED}"]


@pytest.mark.parametrize("end", LINE_ENDS)
def test_no_exception_forges_a_line(text_log: Log, end: str) -> None:
    logging.getLogger("books").error("It failed.", exc_info=ValueError(f"bad{end}{FORGED}"))
    first, *below = text_log.lines()
    assert first.endswith(" ERROR - books: It failed.")
    assert below
    assert all(line.startswith("    ") and line.isprintable() for line in below)


def broken_creation(api: httpx.Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    api.post("/api/books", json=new_book(title=SECRET), headers={"X-Request-ID": GIVEN})


def test_a_failure_is_logged_with_its_traceback(json_log: Log, api: httpx.Client) -> None:
    broken_creation(api)
    failure, access = json_log.objects()
    assert (failure["level"], failure["logger"]) == ("ERROR", "django.request")
    assert failure["message"] == "Internal Server Error: /api/books"
    assert failure["exception"].startswith("Traceback (most recent call last):\n")
    assert "IntegrityError" in failure["exception"]
    assert access["status"] == 500
    assert failure["request_id"] == access["request_id"] == GIVEN


def test_a_failure_does_not_tell_the_row_that_was_refused(text_log: Log, api: httpx.Client) -> None:
    broken_creation(api)
    assert "IntegrityError" in text_log.getvalue()
    assert SECRET not in text_log.getvalue()


def test_every_line_of_the_process_is_an_object(operators_log: list[dict[str, Any]]) -> None:
    members = {"time", "level", "logger", "message", "request_id"}
    assert all(line.keys() >= members for line in operators_log)
    assert {line["logger"] for line in operators_log} == {
        "library_site.access",
        "_granian",
        "axes.handlers.database",
    }


def test_the_log_follows_a_request(operators_log: list[dict[str, Any]]) -> None:
    lines = [line for line in operators_log if line["request_id"] == GIVEN and line["logger"] == "library_site.access"]
    requests = [(line["method"], line["path"], line["status"]) for line in lines]
    assert requests == [
        ("POST", "/api/books", 201),
        ("GET", "/api/books", 200),
        ("GET", "/nowhere", 404),
        ("GET", "/api/books", 401),
        ("GET", "/api/books", 401),
        ("POST", "/oauth/token", 401),
        ("POST", "/admin/login/", 403),
        ("GET", "/admin/login/", 200),
    ]


def test_no_secret_is_logged_at_any_level(operators_log: list[dict[str, Any]]) -> None:
    assert SECRET not in json.dumps(operators_log)
