"""A slow request has a line with the total of its statements."""

import logging
from collections.abc import Iterator

import httpx
import pytest
from django.db import connection
from django.test.utils import override_settings

from library_site.db import statements
from tests.support.applications import open_client
from tests.support.books import build_book


@pytest.fixture
def client(api: httpx.Client) -> Iterator[httpx.Client]:
    """A client of a library in which every request is slow."""
    with override_settings(SLOW_REQUEST_MS=0.001):
        slow_client = open_client()
    # The connection of the tests is older than the application.
    statements.add_wrappers(connection)
    statements.statement_totals.take()
    with slow_client:
        yield slow_client
    connection.execute_wrappers.clear()


def list_slow(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.endswith("slow_requests")]


def test_a_slow_request_has_a_line_with_the_total_of_its_statements(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """On the compiled path too, which answers the reads."""
    address = client.post("/api/v2/books", json=build_book()).headers["Location"]
    for _ in range(2):
        client.get(f"{address}?")
    client.get("/?code=secret")
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
