"""What the body of any write of one book may contain."""

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import LIST_URL, parse_error

MALFORMED = (400, "MALFORMED_REQUEST", ["body"])
NO_JSON = {
    "empty": b"",
    "blank": b" \n",
    "open": b"{",
    "NaN": b'{"year": NaN}',
    "1e400": b'{"year": 1e400}',
    "NaN in an unknown member": b'{"shelf": NaN}',
    "something after": b"{} x",
    "no UTF-8": b'{"title": "\xff"}',
    "surrogate in UTF-8": b'{"title": "\xed\xa0\x80"}',
    "100,000 objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}
JSON_TYPES = ["application/json; charset=utf-8", "APPLICATION/JSON"]


def send(
    api: httpx.Client, address: str, body: bytes | list[bytes] | Callable[[], bytes], **headers: str
) -> Iterator[httpx.Response]:
    """Sends a body in each way that takes a book, in chunks if it is a list."""
    for method, way in (("POST", LIST_URL), ("PUT", address), ("PATCH", address)):
        content = iter(body) if isinstance(body, list) else body() if callable(body) else body
        yield api.request(method, way, content=content, headers=headers)


def encode(**fields: Any) -> bytes:
    return json.dumps(build_book(**fields)).encode()


def test_invalid_json_is_malformed(api: httpx.Client, stored_book: dict[str, Any], address: str) -> None:
    cases: dict[str, bytes | list[bytes]] = {**NO_JSON, "empty, in chunks": []}
    for name, body in cases.items():
        assert [parse_error(response) for response in send(api, address, body)] == [MALFORMED] * 3, name
    assert "The body is empty." in api.patch(address).text
    assert api.get(LIST_URL).json()["results"] == [stored_book]


def test_text_beyond_ascii_may_be_escaped_or_not_whatever_the_charset(api: httpx.Client, address: str) -> None:
    bodies = [encode(title="𐐨"), json.dumps(build_book(title="𐐨"), ensure_ascii=False).encode()]
    assert b"\\ud801\\udc28" in bodies[0]
    for body in bodies:
        assert api.put(address, content=body).json()["title"] == "𐐨"
    for media_type in JSON_TYPES:
        encode_anew = partial(encode, title=f"É {media_type}")
        for response in send(api, address, encode_anew, **{"Content-Type": media_type}):
            assert response.json()["title"] == f"É {media_type}"


def test_a_field_that_is_not_known_is_named_with_the_nearest(api: httpx.Client) -> None:
    body = build_book(titel="Emma", Author="Jane Austen")
    response = api.post(LIST_URL, json=body, headers={"X-Request-ID": "caller-1"})
    assert response.status_code == 422
    assert response.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "The request is not valid",
            "details": [
                {"field": "titel", "message": "It is not known here; the nearest name is title."},
                {"field": "Author", "message": "It is not known here; the nearest name is author."},
            ],
            "requestId": "caller-1",
        }
    }


def test_a_hundred_thousand_unknown_fields_are_refused_in_time(api: httpx.Client) -> None:
    names = ["title author genre " * 500, *range(100_000)]
    body = json.dumps(dict.fromkeys(names, 0), separators=(",", ":"))
    # The library runs in this thread. Its CPU time does not depend on what else the machine does.
    start_time = time.thread_time()
    response = api.post(LIST_URL, content=body)
    assert time.thread_time() - start_time < 1
    assert parse_error(response)[:2] == (422, "VALIDATION_ERROR")
    assert len(response.content) < 10_000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_all_problems_of_a_body_are_listed_together(api: httpx.Client, address: str, method: str) -> None:
    body = {"title": 123, "author": "a" * 501, "year": 19.5, "isbn": None, "genre": " ", "gener": 1}
    response = api.request(method, LIST_URL if method == "POST" else address, json=body)
    assert parse_error(response) == (422, "VALIDATION_ERROR", [*body])
