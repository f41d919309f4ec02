"""Every answer carries an id, and whatever is done for a request can read it."""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.db import connection

from library_site.http import request_id
from library_site.http.request_id import assign_request_id
from tests.support.books import new_book
from tests.support.serving import Service

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

GIVEN = "Caller-1.of_2"
ADDRESSES = {
    "/": 200,
    "/docs": 200,
    "/openapi.json": 200,
    "/static/admin/css/base.css": 200,
    "/api/books": 200,
    "/api/books/0": 404,
    "/api/books/x": 422,
    "/api/nowhere": 404,
    "/nowhere": 404,
    "/admin/": 302,
    "/admin/login/": 200,
    "/admin/nowhere/": 302,
}


def sent(answer: httpx.Response) -> str:
    """The id of an answer, which has just one."""
    (request_id,) = answer.headers.get_list("X-Request-ID")
    assert isinstance(request_id, str)
    return request_id


@pytest.mark.parametrize(("address", "status"), ADDRESSES.items())
def test_every_answer_carries_the_callers_id(api: httpx.Client, address: str, status: int) -> None:
    answer = api.get(address, headers={"X-Request-ID": GIVEN})
    assert (answer.status_code, sent(answer)) == (status, GIVEN)


def test_refusals_and_304s_carry_the_callers_id(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/{book['id']}"
    api.headers["X-Request-ID"] = GIVEN
    answers = [
        api.get("/", headers={"Host": "evil.example"}),
        api.get("/api/books", headers={"Host": "evil.example"}),
        api.post("/api/books", content=b"{}", headers={"Content-Length": "3"}),
        api.post("/api/books", content=b"", headers={"Content-Type": "text/plain"}),
        api.patch("/api/books"),
        api.get(address, headers={"If-None-Match": api.get(address).headers["ETag"]}),
        api.head(address),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 415, 405, 304, 200]
    assert {sent(answer) for answer in answers} == {GIVEN}


def test_a_failure_carries_the_callers_id(api: httpx.Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    answer = api.post("/api/books", json=new_book(), headers={"X-Request-ID": GIVEN})
    assert (answer.status_code, sent(answer)) == (500, GIVEN)


@pytest.mark.parametrize("given", ["a" * 8, "a" * 64, "a.b_C-09"])
def test_an_acceptable_id_is_kept(api: httpx.Client, given: str) -> None:
    assert sent(api.get("/", headers={"X-Request-ID": given})) == given


@pytest.mark.parametrize("given", ["", "a" * 7, "a" * 65, "with space", "a,bcdefgh", "abcdefgh\n", "1" * 9 + "/"])
def test_any_other_id_is_replaced(api: httpx.Client, given: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", sent(api.get("/", headers={"X-Request-ID": given})))


def test_no_two_requests_get_the_same_id(api: httpx.Client) -> None:
    assert len({sent(api.get("/")) for _ in range(50)}) == 50


@pytest.mark.parametrize("address", ["/", "/api/books/1", "/static/admin/css/base.css", "/nowhere"])
def test_the_server_sends_the_id(service: Service, address: str) -> None:
    with service.client() as client:
        assert sent(client.get(address, headers={"X-Request-ID": GIVEN})) == GIVEN


def streaming(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
    start_response(f"200 {HTTPStatus.OK.phrase}", [])
    yield request_id.current_request_id.get().encode()


def failing(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterator[bytes]:
    raise ZeroDivisionError


def test_the_id_is_at_hand_until_the_body_is_sent() -> None:
    with httpx.Client(transport=httpx.WSGITransport(assign_request_id(streaming))) as client:
        answer = client.get("http://library", headers={"X-Request-ID": GIVEN})
    assert answer.text == GIVEN
    assert request_id.current_request_id.get() == "-"


def test_an_exception_passes_and_leaves_the_id_to_whoever_logs_it() -> None:
    with httpx.Client(transport=httpx.WSGITransport(assign_request_id(failing))) as client:
        with pytest.raises(ZeroDivisionError):
            client.get("http://library", headers={"X-Request-ID": GIVEN})
        assert request_id.current_request_id.get() == GIVEN
    request_id.clear_request_id()
