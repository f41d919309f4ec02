"""PUT and PATCH /api/v2/books/{book_id}."""

import json
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import parse_error

BOOKS = "/api/v2/books"
UNKNOWN = f"{BOOKS}/987654321"
STALE = '"of another time"'
MIB = 2**20
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
NEW_VALUES = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "0-14-143958-0", "genre": "Comedy"}
REQUIRED = ["title", "author", "year", "isbn", "genre"]


@pytest.fixture
def creation(api: httpx.Client) -> httpx.Response:
    return api.post(BOOKS, json=build_book())


@pytest.fixture
def book(creation: httpx.Response) -> dict[str, Any]:
    """A stored book, as version 2 answered its creation."""
    stored: dict[str, Any] = creation.json()
    return stored


@pytest.fixture
def address(creation: httpx.Response) -> str:
    return creation.headers["Location"]


def build_replacement(book: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The body of a replacement with the book's own values, except for `fields`."""
    return {**{name: book[name] for name in REQUIRED}, **fields}


def test_each_missing_field_of_a_replacement_is_named(api: httpx.Client, address: str) -> None:
    assert parse_error(api.put(address, json={"available": True})) == (422, "VALIDATION_ERROR", REQUIRED)


@pytest.mark.parametrize("available", [True, False])
def test_a_replacement_keeps_available_where_it_is_absent(api: httpx.Client, address: str, available: bool) -> None:
    api.patch(address, json={"available": available})
    assert api.put(address, json=NEW_VALUES).json()["available"] is available


def test_a_merge_patch_changes_only_the_fields_present(api: httpx.Client, book: dict[str, Any], address: str) -> None:
    changed_book = api.patch(address, content=b'{"available": false}', headers=MERGE_PATCH).json()
    assert changed_book == {**book, "available": False, "version": 2, "updated_at": changed_book["updated_at"]}


def test_an_equal_number_written_otherwise_is_no_change(api: httpx.Client, book: dict[str, Any], address: str) -> None:
    assert api.patch(address, content=b'{"year": 1813.0}').json() == book


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_book_may_be_sent_back_as_it_was_read(
    api: httpx.Client, book: dict[str, Any], address: str, method: str
) -> None:
    response = api.request(method, address, json=book)
    assert (response.status_code, response.json()) == (200, book)
    changed_book = api.request(method, address, json={**book, "available": False}).json()
    assert changed_book == {**book, "available": False, "version": 2, "updated_at": changed_book["updated_at"]}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize("value", [None, 0, 1, "true", "", [], {}], ids=json.dumps)
def test_available_is_a_json_boolean(
    api: httpx.Client, book: dict[str, Any], address: str, method: str, value: object
) -> None:
    response = api.request(method, address, json=build_replacement(book, title="Emma", available=value))
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["available"])
    assert api.get(address).json() == book


@pytest.mark.parametrize("name", [*REQUIRED, "available"])
def test_a_merge_patch_takes_no_field_away(api: httpx.Client, book: dict[str, Any], address: str, name: str) -> None:
    response = api.patch(address, content=json.dumps({name: None}), headers=MERGE_PATCH)
    assert parse_error(response) == (422, "VALIDATION_ERROR", [name])
    assert api.get(address).json() == book


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_the_first_failing_check_is_answered(
    api: httpx.Client, book: dict[str, Any], address: str, method: str
) -> None:
    text_headers, large_body, stale_headers = {"Content-Type": "text/plain"}, b" " * 2 * MIB, {"If-Match": STALE}
    other = api.post(BOOKS, json=build_book()).json()
    in_use = build_replacement(book, isbn=other["isbn"])
    responses = [
        api.request(method, UNKNOWN, content=large_body, headers=text_headers),
        api.request(method, UNKNOWN, content=b"{", headers=text_headers),
        api.request(method, f"{UNKNOWN}?shelf=1", content=b"{", headers=stale_headers),
        api.request(method, f"{address}?shelf=1", json=in_use, headers=stale_headers),
        api.request(method, address, content=b"{", headers=stale_headers),
        api.request(method, address, json={**in_use, "year": "1984"}, headers=stale_headers),
        api.request(method, address, json=in_use, headers=stale_headers),
        api.request(method, address, json=in_use),
    ]
    assert [parse_error(response)[:2] for response in responses] == [
        (413, "PAYLOAD_TOO_LARGE"),
        (415, "UNSUPPORTED_MEDIA_TYPE"),
        (404, "NOT_FOUND"),
        (400, "UNKNOWN_PARAMETER"),
        (400, "MALFORMED_REQUEST"),
        (422, "VALIDATION_ERROR"),
        (412, "PRECONDITION_FAILED"),
        (409, "CONFLICT"),
    ]
