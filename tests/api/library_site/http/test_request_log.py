"""Every response carries a request id, and all code that works for the request can read it."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import pytest

from library_site.http import request_log
from library_site.http.request_log import log_requests

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

REQUEST_ID = "Caller-1.of_2"
ADDRESSES = {
    "/": 200,
    "/static/admin/css/base.css": 200,
    "/api/books": 200,
    "/api/books/0": 404,
    "/nowhere": 404,
    "/admin/": 302,
    "/admin/login/": 200,
}


def get_request_id(response: httpx.Response) -> str:
    """Returns the request id of a response, which must have exactly one."""
    (request_id,) = response.headers.get_list("X-Request-ID")
    assert isinstance(request_id, str)
    return request_id


def test_every_response_carries_the_callers_id(api: httpx.Client) -> None:
    for address, status in ADDRESSES.items():
        response = api.get(address, headers={"X-Request-ID": REQUEST_ID})
        assert (response.status_code, get_request_id(response)) == (status, REQUEST_ID), address


def test_an_acceptable_id_is_kept_and_any_other_is_replaced(api: httpx.Client) -> None:
    for value in ("a" * 8, "a" * 64, "a.b_C-09"):
        assert get_request_id(api.get("/", headers={"X-Request-ID": value})) == value
    others = ["", "a" * 7, "a" * 65, "with space", "a,bcdefgh", "abcdefgh\n", "1" * 9 + "/"]
    new_ids = [get_request_id(api.get("/", headers={"X-Request-ID": value})) for value in others * 2]
    assert [new_id for new_id in new_ids if not re.fullmatch("[0-9a-f]{32}", new_id)] == []
    assert len(set(new_ids)) == len(new_ids)


def stream_request_id(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
    start_response(f"200 {HTTPStatus.OK.phrase}", [])
    yield request_log.current_request_id.get().encode()


def raise_error(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
    raise ZeroDivisionError


def test_the_id_can_be_read_until_the_body_is_sent() -> None:
    with httpx.Client(transport=httpx.WSGITransport(log_requests(stream_request_id))) as client:
        response = client.get("http://library", headers={"X-Request-ID": REQUEST_ID})
    assert response.text == REQUEST_ID
    assert request_log.current_request_id.get() == "-"


def test_an_exception_passes_and_leaves_the_id_for_its_log_line() -> None:
    with httpx.Client(transport=httpx.WSGITransport(log_requests(raise_error))) as client:
        with pytest.raises(ZeroDivisionError):
            client.get("http://library", headers={"X-Request-ID": REQUEST_ID})
        assert request_log.current_request_id.get() == REQUEST_ID
    request_log.current_request_id.set(request_log.NO_REQUEST)
