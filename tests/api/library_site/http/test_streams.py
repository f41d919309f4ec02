"""Answers that are sent piece by piece have a part of the threads: per process, and per address."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client, RequestFactory

from library_site.http.callers import get_address_key
from library_site.http.transfer.streams import StreamLimit, TooManyStreams, TooManyStreamsOfAddress
from oauth import throttling
from oauth.throttling import bound_streams
from tests.support.books_admin import LIST
from tests.support.pages import parse_error

CSV = {"Accept": "text/csv"}
BOOKS = "/api/v2/books"


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> StreamLimit:
    """The limit of this process for one test: three streams, two of an address."""
    limit = StreamLimit(3, 2)
    monkeypatch.setattr(throttling, "get_stream_limit", lambda: limit)
    return limit


@pytest.fixture
def address(rf: RequestFactory) -> str:
    return get_address_key(rf.get("/"))


def test_an_address_may_open_only_some_of_the_streams(limit: StreamLimit) -> None:
    limit.open_stream("ada")
    second = limit.open_stream("ada")
    with pytest.raises(TooManyStreamsOfAddress):
        limit.open_stream("ada")
    limit.open_stream("grace")
    with pytest.raises(TooManyStreams):
        limit.open_stream("alan")
    # Who has its part is told so, though others wait as well.
    with pytest.raises(TooManyStreamsOfAddress):
        limit.open_stream("ada")
    # It is released once.
    second.close()
    second.close()
    limit.open_stream("alan")
    with pytest.raises(TooManyStreams):
        limit.open_stream("ada")


def test_a_file_too_many_of_an_address_is_refused(api: httpx.Client, limit: StreamLimit, address: str) -> None:
    limit.open_stream(address)
    open_stream = limit.open_stream(address)
    refused = api.get(BOOKS, headers=CSV)
    assert parse_error(refused) == (429, "RATE_LIMIT", [])
    assert refused.headers["Retry-After"] == "5"
    assert [api.head(BOOKS, headers=CSV).status_code, api.get(BOOKS).status_code] == [200, 200]
    open_stream.close()
    assert [api.get(BOOKS, headers=CSV).status_code for _ in range(3)] == [200, 200, 200]


def test_a_file_too_many_of_all_is_refused(api: httpx.Client, limit: StreamLimit) -> None:
    for address in ("ada", "grace", "alan"):
        limit.open_stream(address)
    refused = api.get(BOOKS, headers=CSV)
    assert parse_error(refused) == (503, "UNAVAILABLE", [])
    assert refused.headers["Retry-After"] == "5"
    assert api.get(BOOKS).status_code == 200


def test_a_librarian_reads_why_there_is_no_file(root: Client, limit: StreamLimit, address: str) -> None:
    export = f"{LIST}export/?format=csv"
    response: Any = root.get(export)
    assert (response.status_code, bool(b"".join(response.streaming_content))) == (200, True)
    limit.open_stream(address), limit.open_stream(address)
    refused = root.get(export, headers={"Accept": "text/html"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "5")
    assert "Wait a moment, then try again." in refused.content.decode()


def test_a_stream_that_fails_is_released_and_its_address_forgotten(
    limit: StreamLimit, address: str, rf: RequestFactory
) -> None:
    def write_pieces() -> Iterator[bytes]:
        yield b"first"
        raise ConnectionError

    response = bound_streams(lambda _: StreamingHttpResponse(write_pieces()))(rf.get("/"))
    with pytest.raises(ConnectionError):
        b"".join(response)
    assert limit.streams[address] == 1
    response.close()
    assert not limit.streams


@pytest.mark.parametrize("response", [HttpResponse(b"page"), FileResponse(iter([b"file"]))])
def test_what_is_sent_at_once_is_not_counted(
    limit: StreamLimit, address: str, rf: RequestFactory, response: HttpResponse
) -> None:
    def get_response(_: HttpRequest) -> HttpResponse:
        return response

    assert bound_streams(get_response)(rf.get("/")) is response
    assert not limit.streams
