"""What version 1 alone promises of bodies: it ignores unknown fields, and repeats nothing of what it refuses."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.books import build_book

MIB = 2**20

Send = Callable[..., httpx.Response]


@pytest.fixture(params=["POST", "PUT"])
def send(request: pytest.FixtureRequest, api: httpx.Client, book: dict[str, Any]) -> Send:
    """Sends these fields, in a creation beside valid others; or this body, unchanged."""
    address = {"POST": "/api/books", "PUT": f"/api/books/{book['id']}"}[request.param]

    def send(body: bytes | Iterator[bytes] | None = None, **fields: Any) -> httpx.Response:
        content = build_book(**fields) if request.param == "POST" else fields
        return api.request(request.param, address, content=json.dumps(content) if body is None else body)

    return send


def test_all_problems_of_a_body_are_listed_together(send: Send) -> None:
    response = send(title=123, author="a" * 501, year=19.5, isbn=None, genre="g" * 201)
    assert response.status_code == 422
    assert response.json() == {
        "detail": [
            {"loc": ["body", "title"], "msg": "Input should be a valid string.", "type": "string_type"},
            {
                "loc": ["body", "author"],
                "msg": "Ensure this field has no more than 500 characters.",
                "type": "string_too_long",
            },
            {
                "loc": ["body", "year"],
                "msg": "Input should be a valid integer, got a number with a fractional part.",
                "type": "int_from_float",
            },
            {"loc": ["body", "isbn"], "msg": "Input should be a valid string.", "type": "string_type"},
            {
                "loc": ["body", "genre"],
                "msg": "Ensure this field has no more than 200 characters.",
                "type": "string_too_long",
            },
        ]
    }


def test_the_value_of_an_unknown_field_does_not_matter(send: Send) -> None:
    fields = ['"shelf": null', '"shelf": {"title": ["nested"]}', '"\\ud800\\u0000": "\\ud800"', '"": 1']
    fields += ['"non_field_errors": "x"', f'"shelf": {"9" * 5000}']
    for number, field in enumerate(fields):
        response = send(json.dumps(build_book(title=f"Emma {number}")).replace("{", f"{{{field}, ", 1).encode())
        assert (response.is_success, response.json()["title"]) == (True, f"Emma {number}"), field


def test_the_first_failing_check_is_answered(api: httpx.Client) -> None:
    headers, large = {"Content-Type": "text/plain"}, b" " * 2 * MIB
    unknown, malformed = "/api/books/987654321", "/api/books/abc"
    responses = [
        api.patch(unknown, content=large, headers=headers),
        api.put(unknown, content=large, headers=headers),
        api.put(unknown, content=b"{", headers=headers),
        api.put(malformed, content=b"{", headers=headers),
        api.put(unknown, content=b"{"),
        api.put(malformed, content=b"{}"),
    ]
    assert [response.status_code for response in responses] == [405, 413, 415, 415, 404, 422]


def test_a_refusal_does_not_repeat_the_body(send: Send) -> None:
    for body in (
        b'{"title": 1, "year": "Zanzibar"}',
        b'{"title": "%s"}' % (b"Zanzibar" * 200),
        b'{"title": "Zanzibar\\u0000"}',
        b'{"title": "Zanzibar\\ud800"}',
        b'{"Zanzibar": 1, "title": 1}',
        b'"Zanzibar"',
        b'{"Zanzibar": NaN}',
        b'{"Zanzibar"',
    ):
        response = send(body)
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), body


def test_a_refusal_does_not_repeat_the_query(api: httpx.Client) -> None:
    for end in ("/Zanzibar", "?skip=Zanzibar", f"?author={'Zanzibar' * 100}", "?genre=Zanzibar%00"):
        response = api.get(f"/api/books{end}")
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), end
