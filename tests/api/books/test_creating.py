"""POST of one book, in both versions."""

from typing import Any

import httpx

from tests.support.api_versions import VERSION_1, VERSION_2, APIVersion, with_each_version
from tests.support.books import build_book

# Pairs that differ in case, hyphens, spaces, composition and script.
DIFFERENT_ISBNS = [
    ("080442957x", "080442957X"),
    ("0804429573", "080-442-957-3"),
    ("0804429574", " 0804429574"),
    ("0804429575", "0804429575 "),
    ("\u00e9", "e\u0301"),
    ("1", "١"),
    ("0-14-143951-3", "9780141439518"),
]
ONLY_OF_THE_LIBRARY: list[dict[str, Any]] = [
    {"id": 1, "available": False, "isbn13": "9780141439518", "created_at": "2000-01-01T00:00:00.000000Z", "version": 7},
    dict.fromkeys(["id", "available", "isbn13", "created_at", "updated_at", "version"]),
    {"id": "\0", "available": [1], "version": {"title": 1.5}},
]
ADDRESSES = {
    VERSION_1: [("/api/books", "*/*"), ("/api/books/", "*/*"), ("/api/books?format=xml", "*/*")],
    VERSION_2: [
        ("/api/v2/books", "*/*"),
        ("/api/v2/books/", "*/*"),
        ("/api/books?version=2", "*/*"),
        ("/api/books", "application/vnd.library.v2+json"),
        ("/api/books", "application/vnd.library+json"),
    ],
}

pytestmark = with_each_version


def test_a_created_book_is_answered_as_it_is_read_from_then_on(api: httpx.Client, version: APIVersion) -> None:
    for address, accept in ADDRESSES[version]:
        body = build_book()
        response = api.post(address, json=body, headers={"Accept": accept})
        created = response.json()
        assert (response.status_code, response.headers["Location"]) == (201, f"{version.books}/{created['id']}")
        assert created == {**created, **body, "available": True}
        read = api.get(response.headers["Location"])
        assert (read.json(), read.headers["ETag"]) == (created, response.headers["ETag"])


def test_what_only_the_library_sets_is_ignored(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any]
) -> None:
    shelf = {"shelf": None} if version is VERSION_1 else {}
    for fields in ONLY_OF_THE_LIBRARY:
        created = version.create(api, **fields, **shelf).json()
        assert created.keys() == stored_book.keys()
        assert created["id"] > stored_book["id"]
        assert created["created_at"] > stored_book["created_at"]
        of_version_2 = {"isbn13": None, "version": 1, "updated_at": created["created_at"]}
        assert created == {**created, "available": True, **({} if version is VERSION_1 else of_version_2)}


def test_isbns_that_differ_in_any_character_are_different(api: httpx.Client, version: APIVersion) -> None:
    pairs = [*DIFFERENT_ISBNS, *([("", " ")] if version is VERSION_1 else [])]
    for pair in pairs:
        responses = [api.post(version.books, json=build_book(isbn=isbn)) for isbn in (*pair, *pair)]
        assert (pair, [response.status_code for response in responses]) == (pair, [201, 201, 409, 409])
    assert [book["isbn"] for book in version.list_books(api)] == [isbn for pair in pairs for isbn in pair]
