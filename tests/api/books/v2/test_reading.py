"""GET /api/v2/books/{book_id}: which texts are ids, and which fields are shown."""

import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import LIST_URL, parse_error

INTEGERS_OF_NO_BOOK = ["987654321", "0", "-0", 2**31, 2**63 - 1, 2**63, -(2**63), "9" * 5_000, "-" + "9" * 5_000]
NO_INTEGERS = "abc +5 1.0 1_0 --1 - %201 1%0A %00 %C2%B2".split()
BODIES = {"PUT": b"{", "PATCH": b'{"year": 2000}'}


def test_a_book_is_answered_whole(api: httpx.Client) -> None:
    before = datetime.now(UTC)
    created = api.post(LIST_URL, json=build_book(isbn="0-14-143951-3")).json()
    response = api.get(f"{LIST_URL}/{created['id']}")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.json() == {
        "id": created["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "0-14-143951-3",
        "isbn13": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
        "version": 1,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created["created_at"])
    assert before <= datetime.fromisoformat(created["created_at"]) <= datetime.now(UTC)
    of_version_1 = api.get(f"/api/books/{created['id']}").json()
    assert f"{of_version_1['created_at']}Z" == created["created_at"]
    assert response.json() == {**response.json(), **of_version_1, "created_at": created["created_at"]}


def test_an_integer_that_names_no_book_is_not_found(api: httpx.Client, stored_book: dict[str, Any]) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        for book_id in INTEGERS_OF_NO_BOOK:
            response = api.request(method, f"{LIST_URL}/{book_id}", content=BODIES.get(method))
            assert parse_error(response) == (404, "NOT_FOUND", []), (method, book_id)
    assert api.get(LIST_URL).json()["results"] == [stored_book]


def test_an_id_that_is_no_integer_is_refused(api: httpx.Client) -> None:
    for method in ("GET", "PUT", "PATCH", "DELETE"):
        for book_id in NO_INTEGERS:
            response = api.request(method, f"{LIST_URL}/{book_id}", content=BODIES.get(method))
            assert (response.status_code, parse_error(response)[2][0]) == (422, "book_id"), (method, book_id)


def test_leading_zeros_and_a_slash_at_the_end_change_nothing(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    for path in (f"00{stored_book['id']}", f"{'0' * 5_000}{stored_book['id']}", f"{stored_book['id']}/"):
        assert api.get(f"{LIST_URL}/{path}").json() == stored_book
    address = f"{LIST_URL}/00{stored_book['id']}"
    assert api.patch(address, json={"year": 2000}).json()["year"] == 2000
    assert api.delete(address).status_code == 204


def test_a_client_may_select_fields(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    for names in ("title", "title,id", "version,isbn13,available,created_at", ",".join(stored_book)):
        response = api.get(address, params={"fields": names})
        assert response.json() == {name: stored_book[name] for name in names.split(",")}
    assert api.get(f"{address}?fields=id,title,id").text == api.get(f"{address}?fields=id,title").text


@pytest.mark.parametrize("array", ["fields[]=id&fields[]=title", "fields%5B0%5D=id&fields%5B1%5D=title"])
def test_an_array_of_a_client_is_a_repeated_parameter(api: httpx.Client, address: str, array: str) -> None:
    """As axios and PHP write one. A parameter of one value is no array."""
    assert list(api.get(f"{address}?{array}").json()) == ["id", "title"]
    assert list(api.get(f"{LIST_URL}?{array}&limit=1").json()["results"][0]) == ["id", "title"]
    assert api.get(f"{LIST_URL}?{array.replace('fields', 'title')}").status_code == 400
    assert api.get(f"{address}?{array.replace('fields', 'fields[x]')}").status_code == 400


def test_only_existing_fields_may_be_selected(api: httpx.Client, address: str) -> None:
    response = api.get(f"{address}?fields=id,tittle,created")
    assert response.status_code == 422
    assert response.json()["error"]["details"] == [
        {"field": "fields", "message": '"tittle": It is not known here; the nearest name is title.'},
        {"field": "fields", "message": '"created": It is not known here; the nearest name is created_at.'},
    ]
    for value in ("", "id,", "id,,title", "ID", "%20id", "%00", "*", "title_folded", "x" * 5_000):
        status, code, fields = parse_error(api.get(f"{address}?fields={value}", headers={"If-Match": '"stale"'}))
        assert (status, code, {*fields}) == (422, "VALIDATION_ERROR", {"fields"}), value


def test_the_etag_is_the_same_whatever_fields_are_selected(api: httpx.Client, address: str, etag: str) -> None:
    assert api.get(f"{address}?fields=title").headers["ETag"] == etag
    assert api.get(f"{address}?fields=title", headers={"If-None-Match": etag}).status_code == 304
