"""Every response carries a request id, which all code of the request can read. A slow one has a line of its own."""

import logging
import re
from collections.abc import Iterator

import httpx
import pytest
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse
from django.test import RequestFactory
from django.test.utils import override_settings

from library_site.db import statements
from library_site.http import request_log
from library_site.monitoring.middleware import RequestLogMiddleware
from tests.support.applications import open_client
from tests.support.books import build_book
from tests.support.responses import REQUEST_ID


def get_request_id(response: httpx.Response) -> str:
    """Returns the request id of a response, which must have exactly one."""
    (request_id,) = response.headers.get_list("X-Request-ID")
    assert isinstance(request_id, str)
    return request_id


def test_an_acceptable_id_is_kept_and_any_other_is_replaced(api: httpx.Client) -> None:
    for value in ("a" * 8, "a" * 64, "a.b_C-09"):
        assert get_request_id(api.get("/", headers={"X-Request-ID": value})) == value
    others = ["", "a" * 7, "a" * 65, "with space", "a,bcdefgh", "abcdefgh\n", "1" * 9 + "/"]
    new_ids = [get_request_id(api.get("/", headers={"X-Request-ID": value})) for value in others * 2]
    assert [new_id for new_id in new_ids if not re.fullmatch("[0-9a-f]{32}", new_id)] == []
    assert len(set(new_ids)) == len(new_ids)


def respond_with_id(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(request_log.current_request_id.get().encode() for _ in range(1))


def test_the_id_can_be_read_until_the_body_is_sent(rf: RequestFactory) -> None:
    response = RequestLogMiddleware(respond_with_id)(rf.get("/", headers={"X-Request-ID": REQUEST_ID}))
    assert b"".join(response) == REQUEST_ID.encode()
    assert [entry.request_id for entry in request_log.active_requests.values()] == [REQUEST_ID]
    response.close()
    assert (request_log.current_request_id.get(), request_log.active_requests) == ("-", {})


@pytest.fixture
def slow_client(api: httpx.Client) -> Iterator[httpx.Client]:
    """A client of a library in which every request is slow."""
    with override_settings(SLOW_REQUEST_MS=0.001):
        client = open_client()
    # The connection of the tests is older than the application.
    statements.add_wrappers(connection)
    statements.statement_totals.take()
    with client:
        yield client
    connection.execute_wrappers.clear()


def list_slow(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.endswith("slow_requests")]


def test_a_slow_request_has_a_line_with_the_total_of_its_statements(
    slow_client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """On the compiled path too, which answers the reads."""
    address = slow_client.post("/api/v2/books", json=build_book()).headers["Location"]
    for _ in range(2):
        slow_client.get(f"{address}?")
    slow_client.get("/?code=secret")
    created, *reads, page = (record.__dict__["fields"] for record in list_slow(caplog))
    assert (page["path"], page["route"], page["statements"]) == ("/", "root", 0)
    assert (reads[0]["path"], reads[0]["route"], reads[0]["status"]) == (address, "book", 200)
    assert created["statements"] >= 1
    assert [read["statements"] for read in reads] == [1, 1]
    assert all(0 < read["statements_ms"] < read["duration_ms"] for read in reads)
    line = "Slow: GET {path} 200 {duration_ms} ms, 1 statements {statements_ms} ms".format(**reads[0])
    assert list_slow(caplog)[1].getMessage() == line


def test_a_fast_request_has_no_line(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    api.get("/")
    assert list_slow(caplog) == []
