"""What the corpus does not show of requests of version 1: their addresses, bodies and pages."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.responses import parse_allow


@pytest.mark.parametrize("address", ["/", "/openapi.json", "/api/books", "/api/v2/books/1"])
def test_methods_are_case_sensitive(api: httpx.Client, address: str) -> None:
    """RFC 9110, 9.1."""
    for method in ("get", "Post", "pUT", "options"):
        request = api.build_request("GET", address)
        request.method = method
        response = api.send(request)
        assert (response.status_code, {"GET", "HEAD"} <= parse_allow(response)) == (405, True), method
        # As it was sent.
        assert method in response.text


def test_an_unknown_address_is_not_found(api: httpx.Client) -> None:
    for address in ("/api/", "/api/books//", "/api/books/1/2", "/api/books/1%2F2", "/api/books%0A", "/API/BOOKS",
                    "/api/books.json", "//api/books"):  # fmt: skip
        for method in ("GET", "POST", "PROPFIND"):
            response = api.request(method, httpx.URL(f"http://127.0.0.1{address}"))
            assert (response.status_code, response.json()) == (404, {"detail": "Not Found"}), (method, address)
            assert response.headers["Content-Type"] == "application/json"


def test_the_value_of_an_unknown_field_does_not_matter(api: httpx.Client) -> None:
    fields = ['"shelf": null', '"shelf": {"title": ["nested"]}', '"\\ud800\\u0000": "\\ud800"', '"": 1']
    fields += ['"non_field_errors": "x"', f'"shelf": {"9" * 5000}']
    for field in fields:
        response = api.post("/api/books", content=json.dumps(build_book()).replace("{", f"{{{field}, ", 1))
        assert response.status_code == 201, field


def test_the_last_of_equal_members_counts_and_a_year_is_finite(api: httpx.Client, book: dict[str, Any]) -> None:
    body = json.dumps(build_book(title="last")).replace("{", '{"title": 1, ', 1).encode()
    assert api.post("/api/books", content=body.ljust(2**20)).json()["title"] == "last"
    for year in ("1e400", "Infinity"):
        response = api.put(f"/api/books/{book['id']}", content=f'{{"year": {year}}}')
        assert response.status_code == 422, year


def test_a_refusal_does_not_repeat_the_request(api: httpx.Client, book: dict[str, Any]) -> None:
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
        response = api.put(f"/api/books/{book['id']}", content=body)
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), body
    for end in ("/Zanzibar", "?skip=Zanzibar", f"?author={'Zanzibar' * 100}", "?genre=Zanzibar%00"):
        response = api.get(f"/api/books{end}")
        assert (response.status_code, "Zanzibar" in response.text) == (422, False), end


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()]


def test_skip_and_limit_select_a_part(api: httpx.Client) -> None:
    titles = [f"Volume {number}" for number in range(501)]
    changes.create_books([build_book(title=title) for title in titles], ACTOR, datetime.now(UTC))
    parts = {
        "": slice(0, 100),
        "limit=500": slice(0, 500),
        "limit=007": slice(0, 7),
        "skip=-0": slice(0, 100),
        "skip=499&limit=500": slice(499, 501),
        "skip=501": slice(0, 0),
        f"skip={2**63 - 1}": slice(0, 0),
        f"skip={2**63}": slice(0, 0),
        f"skip={'9' * 5000}": slice(0, 0),
        "skip=-1&skip=5&limit=abc&limit=2": slice(5, 7),
    }
    responses = {query: api.get(f"/api/books?{query}") for query in parts}
    assert {query: list_titles(response) for query, response in responses.items()} == {
        query: titles[part] for query, part in parts.items()
    }


def test_deep_pages_hold_every_book_once(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond an offset of 1,000 another statement finds the page."""
    monkeypatch.setattr("books.api.v1.pagination.DEEP_OFFSET", 3)
    books = [create_book(title=str(number)) for number in range(9)]
    # A deleted book leaves a gap, so that ids and offsets differ.
    delete_book(books.pop(5))
    pages = {skip: list_titles(api.get("/api/books", params={"skip": skip, "limit": 3})) for skip in range(2, 10)}
    assert pages == {skip: [book.title for book in books[skip : skip + 3]] for skip in pages}


def test_any_number_of_unknown_parameters_is_ignored(api: httpx.Client) -> None:
    address = "/api/books?%00=%00&&=&" + "&".join(f"p{number}" for number in range(5_000))
    assert api.get(address).json() == []
