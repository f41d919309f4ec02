"""POST /api/v2/books."""

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from books.fields import clean_white_space
from tests.support.books import build_book
from tests.support.pages import LIST_URL
from tests.support.strategies import hypothesis_settings

# Pairs that differ in case, hyphens, spaces, composition and script.
DIFFERENT_ISBNS = [
    ("080442957x", "080442957X"),
    ("0804429573", "080-442-957-3"),
    ("0804429575", "0804 429575"),
    ("\u00e9", "e\u0301"),
    ("1", "١"),
    ("0-14-143951-3", "9780141439518"),
]
ONLY_OF_THE_LIBRARY: list[dict[str, Any]] = [
    {"id": 1, "available": False, "isbn13": "9780141439518", "created_at": "2000-01-01T00:00:00.000000Z", "version": 7},
    dict.fromkeys(["id", "available", "isbn13", "created_at", "updated_at", "version"]),
    {"id": "\0", "available": [1], "version": {"title": 1.5}},
]
ADDRESSES = [
    (LIST_URL, "*/*"),
    (f"{LIST_URL}/", "*/*"),
    ("/api/books?version=2", "*/*"),
    ("/api/books", "application/vnd.library+json"),
]


def test_a_created_book_is_answered_as_it_is_read_from_then_on(api: httpx.Client) -> None:
    for address, accept in ADDRESSES:
        body = build_book()
        response = api.post(address, json=body, headers={"Accept": accept})
        created = response.json()
        assert (response.status_code, response.headers["Location"]) == (201, f"{LIST_URL}/{created['id']}")
        assert created == {**created, **body, "available": True}
        read = api.get(response.headers["Location"])
        assert (read.json(), read.headers["ETag"]) == (created, response.headers["ETag"])


def test_what_only_the_library_sets_is_ignored(api: httpx.Client, stored_book: dict[str, Any]) -> None:
    for fields in ONLY_OF_THE_LIBRARY:
        created = api.post(LIST_URL, json=build_book(**fields)).json()
        assert (created["id"] > stored_book["id"], created["created_at"] > stored_book["created_at"]) == (True, True)
        of_the_library = {"isbn13": None, "version": 1, "updated_at": created["created_at"], "available": True}
        assert created == {**created, **of_the_library}
        assert created.keys() == stored_book.keys()


def test_isbns_that_differ_in_any_character_are_different(api: httpx.Client) -> None:
    for pair in DIFFERENT_ISBNS:
        responses = [api.post(LIST_URL, json=build_book(isbn=isbn)) for isbn in (*pair, *pair)]
        assert (pair, [response.status_code for response in responses]) == (pair, [201, 201, 409, 409])


def test_links_are_built_from_the_public_address(
    api: httpx.Client, stored_book: dict[str, Any], settings: Settings
) -> None:
    settings.PUBLIC_URL = "https://library.example"
    response = api.post(LIST_URL, json=build_book(isbn=stored_book["isbn"]), headers={"Host": "localhost"})
    assert response.headers["Link"] == f'<https://library.example{LIST_URL}/{stored_book["id"]}>; rel="related"'


texts = st.text(max_size=70)
years = st.integers(-(2**31), 2**31 - 1) | st.integers(-800, 2100).map(float)
books = st.fixed_dictionaries({"title": texts, "author": texts, "year": years, "isbn": texts, "genre": texts})


@pytest.mark.parametrize("method", ["POST", "PUT"])
@hypothesis_settings
@given(body=books)
def test_accepted_values_are_stored_with_clean_white_space(
    api: httpx.Client, address: str, method: str, body: dict[str, Any]
) -> None:
    response = api.request(method, LIST_URL if method == "POST" else address, json=body)
    assert response.status_code in (200, 201, 409, 422)
    if response.is_success:
        stored = api.get(f"{LIST_URL}/{response.json()['id']}").json()
        assert {name: stored[name] for name in body} == {
            name: clean_white_space(value) if isinstance(value, str) else value for name, value in body.items()
        }
