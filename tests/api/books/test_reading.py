"""GET of one book, and which texts are ids, in both versions."""

import re
from datetime import UTC, datetime
from typing import Any

import httpx

from tests.support.api_versions import VERSION_1, VERSION_2, APIVersion, with_each_version

INTEGERS_OF_NO_BOOK = ["987654321", "0", "-0", "-5", 2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30]
INTEGERS_OF_NO_BOOK += ["9" * 5_000, "-" + "9" * 5_000]
NO_INTEGERS = "abc +5 1.0 1e3 0x1 1_0 --1 - 1- %20 %201 1%20 1%0A %00 null true first".split()
# An Arabic digit, a full-width one, a superscript, a typographic minus, and what is no UTF-8.

pytestmark = with_each_version


def test_a_book_is_answered_whole(api: httpx.Client, version: APIVersion) -> None:
    created = version.create(api, isbn="0-14-143951-3").json()
    response = api.get(f"{version.books}/{created['id']}")
    of_version_2 = {"isbn13": "9780141439518", "updated_at": created["created_at"], "version": 1}
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.json() == {
        "id": created["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "0-14-143951-3",
        "genre": "Novel",
        "available": True,
        "created_at": created["created_at"],
        **(of_version_2 if version is VERSION_2 else {}),
    }


def test_both_versions_show_one_book(api: httpx.Client, version: APIVersion, stored_book: dict[str, Any]) -> None:
    first, second = (api.get(f"{one.books}/{stored_book['id']}").json() for one in (VERSION_1, VERSION_2))
    created_at = f"{first['created_at']}Z"
    of_version_2 = {"isbn13": None, "created_at": created_at, "updated_at": created_at, "version": 1}
    assert second == {**first, **of_version_2}


def test_times_are_in_utc(api: httpx.Client, version: APIVersion) -> None:
    before, book, after = datetime.now(UTC), version.create(api).json(), datetime.now(UTC)
    zone = "Z" if version is VERSION_2 else ""
    for name in {"created_at", "updated_at"} & book.keys():
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{6}}{zone}", book[name])
        assert before <= datetime.fromisoformat(book[name]).replace(tzinfo=UTC) <= after


def request_book(client: httpx.Client, version: APIVersion, method: str, book_id: object) -> tuple[int, list[str]]:
    """Returns the error of a request for a book, with a body for changes."""
    body = b'{"year": 2000}' if method == "PATCH" or version is VERSION_1 else b"{"
    content = body if method in version.changes else None
    return version.parse_error(client.request(method, f"{version.books}/{book_id}", content=content))


def test_an_integer_that_names_no_book_is_not_found(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any]
) -> None:
    methods = ("GET", *version.changes, "DELETE")
    cases = [(method, book_id) for method in methods for book_id in INTEGERS_OF_NO_BOOK]
    others = [(case, error) for case in cases if (error := request_book(api, version, *case)) != (404, [])]
    assert others == []
    assert version.list_books(api) == [stored_book]


def test_an_id_that_is_no_integer_is_refused(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any]
) -> None:
    for method in ("GET", *version.changes, "DELETE"):
        for book_id in NO_INTEGERS:
            status, [first, *_] = request_book(api, version, method, book_id)
            assert (method, book_id, status, first) == (method, book_id, 422, "book_id")
    assert version.list_books(api) == [stored_book]


def test_leading_zeros_change_nothing(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], etag: str
) -> None:
    for zeros in (2, 5_000):
        response = api.get(f"{version.books}/{'0' * zeros}{stored_book['id']}")
        assert (response.json(), response.headers["ETag"]) == (stored_book, etag)
    address = f"{version.books}/00{stored_book['id']}"
    method = version.changes[-1]
    assert api.request(method, address, json={"year": 2000}).json()["year"] == 2000
    assert api.delete(address).status_code == version.deleted[0]


def test_a_slash_at_the_end_changes_nothing(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    assert api.get(f"{address}/").json() == stored_book
