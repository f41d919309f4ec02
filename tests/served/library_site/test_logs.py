"""What the log tells operators, and which secrets never appear in it."""

import json
import logging
import os
import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.db import connection

from library_site.monitoring.log_formatters import JSONFormatter, TextFormatter
from tests.support.books import build_book
from tests.support.logs import Log, capture_log, kill_worker
from tests.support.server import serve_library
from tests.support.waiting import wait_until

REQUEST_ID = "Caller-1.of_2"
TIME_PATTERN = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
SECRET = "open-sesame"
FORGED_LINE = "2026-01-31T09:30:00.000Z ERROR - books: forged"
LINE_BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2K\r", "\b", "\0"]


@pytest.fixture
def text_log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    yield from capture_log(TextFormatter(), caplog)


@pytest.fixture
def json_log(caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    yield from capture_log(JSONFormatter(), caplog)


def count_requests(log: str) -> int:
    return sum("library_site.access" in line and REQUEST_ID in line for line in log.splitlines())


@pytest.fixture(scope="module")
def service_log(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The whole JSON log of a service at level debug that received requests full of secrets."""
    settings = {"LOG_FORMAT": "json", "LOG_LEVEL": "debug", "DEBUG": "true"}
    with serve_library(tmp_path_factory.mktemp("debug"), **settings) as service:
        kill_worker(service.process.pid)
        with service.open_client() as client:
            send_secrets(client)
        wait_until(lambda: count_requests(service.log.read_text()) == 8)
    return [json.loads(line) for line in service.log.read_text().splitlines()]


def send_secrets(client: httpx.Client) -> None:
    client.headers["X-Request-ID"] = REQUEST_ID
    client.cookies["sessionid"] = SECRET
    client.post("/api/books", json=build_book(isbn=SECRET))
    client.get(f"/api/books?author={SECRET}")
    client.get(f"/nowhere?code={SECRET}")
    for credential in ({"Authorization": f"Bearer {SECRET}"}, {"X-API-Key": SECRET}):
        client.get("/api/books", headers=credential)
    secrets = dict.fromkeys(("client_id", "client_secret", "refresh_token"), SECRET)
    client.post("/oauth/token", data={"grant_type": "refresh_token", **secrets})
    client.post("/admin/login/", data={"username": SECRET, "password": SECRET})
    client.get(f"/admin/login/?next={SECRET}")
    del client.headers["X-Request-ID"]


def test_a_request_is_logged_in_one_line(text_log: Log, api: httpx.Client) -> None:
    api.get("/api/books/0", headers={"X-Request-ID": REQUEST_ID})
    (line,) = text_log.split_lines()
    assert re.fullmatch(
        rf"{TIME_PATTERN} INFO {REQUEST_ID} library_site\.access: GET /api/books/0 404 \d+\.\d+ ms", line
    )


def test_a_request_is_logged_as_one_object(json_log: Log, api: httpx.Client) -> None:
    api.delete("/api/books/0/", headers={"X-Request-ID": REQUEST_ID})
    (line,) = json_log.parse_lines()
    time, duration = line.pop("time"), line.pop("duration_ms")
    assert (line.pop("pid"), line.pop("instance")) == (os.getpid(), socket.gethostname())
    assert re.fullmatch(TIME_PATTERN, time)
    assert 0 < duration < 60_000
    assert line == {
        "level": "INFO",
        "logger": "library_site.access",
        "message": f"DELETE /api/books/0/ 404 {duration} ms",
        "request_id": REQUEST_ID,
        "method": "DELETE",
        "path": "/api/books/0/",
        "status": 404,
    }


def test_every_request_is_logged_with_its_path_as_it_was_sent(json_log: Log, api: httpx.Client) -> None:
    statuses = {"/": 200, "/static/admin/css/base.css": 200, "/a%0D%0Ab%1B%20%22c": 404, "/admin/": 302}
    ids = [api.get(address).headers["X-Request-ID"] for address in statuses]
    lines = json_log.parse_lines()
    assert {line["path"]: line["status"] for line in lines} == statuses
    assert [line["request_id"] for line in lines] == ids


def test_at_warning_requests_are_not_logged(text_log: Log, api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "library_site")
    api.get("/")
    assert text_log.split_lines() == []


def test_outside_of_a_request_there_is_no_id(json_log: Log, api: httpx.Client) -> None:
    api.get("/", headers={"X-Request-ID": REQUEST_ID})
    logging.getLogger("books").warning("The shelf is full.")
    assert [line["request_id"] for line in json_log.parse_lines()] == [REQUEST_ID, "-"]


def test_no_text_forges_a_line(text_log: Log) -> None:
    for end in LINE_BREAKS:
        logging.getLogger("books").warning("read %s", f"é{end}{FORGED_LINE}")
    lines = text_log.split_lines()
    assert len(lines) == len(LINE_BREAKS)
    assert [line for line in lines if not line.isprintable() or "read é\\" not in line] == []


def test_no_text_forges_an_object(json_log: Log) -> None:
    texts = [f"é\ud800{end}{FORGED_LINE}" for end in LINE_BREAKS]
    for text in texts:
        logging.getLogger("books").warning("read %s", text)
    assert [line["message"] for line in json_log.parse_lines()] == [f"read {text}" for text in texts]


def test_no_exception_forges_a_line(text_log: Log) -> None:
    logging.getLogger("books").error("It failed.", exc_info=ValueError(f"bad{FORGED_LINE.join(LINE_BREAKS)}"))
    first, *others = text_log.split_lines()
    assert first.endswith(" ERROR - books: It failed.")
    assert others
    assert all(line.startswith("    ") and line.isprintable() for line in others)


def fail_to_create_book(api: httpx.Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    api.post("/api/books", json=build_book(title=SECRET), headers={"X-Request-ID": REQUEST_ID})


def test_a_failure_is_logged_with_its_traceback(json_log: Log, api: httpx.Client) -> None:
    fail_to_create_book(api)
    failure, access = json_log.parse_lines()
    assert (failure["level"], failure["logger"]) == ("ERROR", "django.request")
    assert failure["message"] == "Internal Server Error: /api/books"
    assert failure["exception"].startswith("Traceback (most recent call last):\n")
    assert "IntegrityError" in failure["exception"]
    assert access["status"] == 500
    assert failure["request_id"] == access["request_id"] == REQUEST_ID
    # The refused row is not logged.
    assert SECRET not in json_log.getvalue()


def test_every_line_of_the_process_is_an_object(service_log: list[dict[str, Any]]) -> None:
    fields = {"time", "level", "logger", "message", "pid", "instance"}
    assert all(line.keys() >= fields for line in service_log)
    # The parent, its worker, and the one in whose place that came.
    assert len({line["pid"] for line in service_log}) == 3
    assert {line["logger"] for line in service_log} == {
        "library_site.access",
        "_granian",
        "axes.handlers.database",
        "library_site.process",
        # The start.
        "manage.py",
    }


def test_the_log_follows_a_request(service_log: list[dict[str, Any]]) -> None:
    lines = [
        line for line in service_log if line.get("request_id") == REQUEST_ID and line["logger"] == "library_site.access"
    ]
    # A response is logged after it was sent, so another thread may log the next one first.
    requests = sorted((line["method"], line["path"], line["status"]) for line in lines)
    assert requests == [
        ("GET", "/admin/login/", 200),
        ("GET", "/api/books", 200),
        ("GET", "/api/books", 401),
        ("GET", "/api/books", 401),
        ("GET", "/nowhere", 404),
        ("POST", "/admin/login/", 403),
        ("POST", "/api/books", 201),
        ("POST", "/oauth/token", 401),
    ]


def test_no_secret_is_logged_at_any_level(service_log: list[dict[str, Any]]) -> None:
    assert SECRET not in json.dumps(service_log)
