"""PUT and PATCH /api/v2/books/{book_id}."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import LIST_URL, parse_error

UNKNOWN = f"{LIST_URL}/987654321"
STALE = '"of another time"'
MIB = 2**20
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
EMMA = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "0-14-143958-0", "genre": "Comedy"}

each_method = pytest.mark.parametrize("method", ["PUT", "PATCH"])


def require_change(api: httpx.Client, response: httpx.Response, before: dict[str, Any], **changes: Any) -> None:
    """The response shows the book, with these changes of what was there before, and so does the address."""
    isbn13 = {"isbn13": "9780141439587"} if changes.get("isbn") == EMMA["isbn"] else {}
    expected = {**before, **changes, **isbn13, "version": before["version"] + 1}
    assert response.json() == {**expected, "updated_at": response.json()["updated_at"]}
    assert response.json()["updated_at"] > before["updated_at"]
    read = api.get(f"{LIST_URL}/{before['id']}")
    assert (read.json(), read.headers["ETag"]) == (response.json(), response.headers["ETag"])


def test_a_changed_book_is_answered_whole_and_no_other_is_changed(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    other = api.post(LIST_URL, json=build_book()).json()
    own_isbn = EMMA | {"isbn": stored_book["isbn"]}
    first = api.put(address, json=own_isbn)
    require_change(api, first, stored_book, **own_isbn)
    require_change(api, api.put(address, json=EMMA), first.json(), **EMMA)
    assert api.get(f"{LIST_URL}/{other['id']}").json() == other


def test_a_merge_patch_changes_only_the_fields_present(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    before = stored_book
    for name, value in {**EMMA, "available": False}.items():
        response = api.patch(address, json={name: value}, headers=MERGE_PATCH)
        require_change(api, response, before, **{name: value})
        before = response.json()
    for name in (*EMMA, "available"):
        response = api.patch(address, json={name: None}, headers=MERGE_PATCH)
        assert parse_error(response) == (422, "VALIDATION_ERROR", [name])


def test_equal_values_are_no_change(api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str) -> None:
    # Other values of what only the library sets are ignored.
    ignored = {"id": 77, "created_at": "2000", "isbn13": None, "version": 9, "updated_at": []}
    own_values = {name: stored_book[name] for name in EMMA}
    cases = [(method, body) for method in ("PUT", "PATCH") for body in (own_values, stored_book, own_values | ignored)]
    parts: list[dict[str, Any]] = [{}, {"title": stored_book["title"]}, {"year": 1813.0}, ignored]
    for method, body in [*cases, *(("PATCH", body) for body in parts)]:
        response = api.request(method, address, json=body)
        assert (response.json(), response.headers["ETag"]) == (stored_book, etag), (method, body)


def test_a_replacement_names_each_missing_field_and_keeps_available_where_it_is_absent(
    api: httpx.Client, address: str
) -> None:
    assert parse_error(api.put(address, json={"available": True})) == (422, "VALIDATION_ERROR", [*EMMA])
    for available in (False, True):
        assert api.put(address, json={**EMMA, "available": available}).json()["available"] is available
        assert api.put(address, json=EMMA).json()["available"] is available


@each_method
def test_available_is_a_json_boolean(api: httpx.Client, stored_book: dict[str, Any], address: str, method: str) -> None:
    values: list[object] = [None, 0, "true", []]
    for value in values:
        response = api.request(method, address, json={**EMMA, "available": value})
        assert parse_error(response) == (422, "VALIDATION_ERROR", ["available"])
    assert api.get(address).json() == stored_book


@each_method
def test_an_unknown_book_is_not_found_whatever_the_body(api: httpx.Client, address: str, method: str) -> None:
    in_use = f'{{"isbn": "{api.get(address).json()["isbn"]}"}}'.encode()
    for body in (b'{"year": 2000}', b'{"year": "1984"}', b"{", b"", b"[]", in_use):
        response = api.request(method, UNKNOWN, content=body, headers={"If-Match": STALE})
        assert parse_error(response) == (404, "NOT_FOUND", []), body
