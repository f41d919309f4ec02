"""GET /api/books: which part of the collection, and in which order."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from books.models import Book
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.responses import list_problems


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()]


@pytest.fixture
def stored_titles(api: httpx.Client) -> list[str]:
    """The titles of 102 books, in the order of their creation."""
    names = [f"Volume {number}" for number in range(102)]
    changes.create_books([build_book(title=name) for name in names], ACTOR, now=datetime.now(UTC))
    return names


def test_an_empty_library_is_an_empty_list(api: httpx.Client) -> None:
    response = api.get("/api/books")
    assert (response.status_code, response.json()) == (200, [])
    assert response.headers["Content-Type"] == "application/json"


def test_the_list_is_ordered_by_id_whatever_changes(api: httpx.Client) -> None:
    ids = [api.post("/api/books", json=build_book(title=title)).json()["id"] for title in "CAB"]
    api.put(f"/api/books/{ids[0]}", json={"title": "Z"})
    api.put(f"/api/books/{ids[1]}", json={"isbn": "0"})
    assert [book["id"] for book in api.get("/api/books").json()] == sorted(ids)


def test_a_list_holds_100_books_unless_asked_otherwise(api: httpx.Client, stored_titles: list[str]) -> None:
    assert list_titles(api.get("/api/books")) == stored_titles[:100]


def test_skip_and_limit_select_a_part(api: httpx.Client, stored_titles: list[str]) -> None:
    parts = {
        "limit=1": slice(0, 1),
        "limit=500": slice(0, 102),
        "limit=007": slice(0, 7),
        "skip=-0": slice(0, 100),
        "skip=7&limit=3": slice(7, 10),
        "skip=100&limit=500": slice(100, 102),
        "skip=102": slice(0, 0),
        f"skip={2**63 - 1}": slice(0, 0),
        f"skip={2**63}": slice(0, 0),
        f"skip={'9' * 5000}": slice(0, 0),
        "skip=-1&skip=5&limit=abc&limit=2": slice(5, 7),
    }
    responses = {query: api.get(f"/api/books?{query}") for query in parts}
    assert {query: list_titles(response) for query, response in responses.items()} == {
        query: stored_titles[part] for query, part in parts.items()
    }


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "by-Django"}], ids=["compiled", "Django"])
def test_deep_pages_hold_every_book_once(
    api: httpx.Client, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond an offset of 1,000 another statement finds the page."""
    monkeypatch.setattr("books.api.v1.pagination.DEEP_OFFSET", 3)
    ids = [create_book(title=str(number)).pk for number in range(9)]
    # A deleted book leaves a gap, so that ids and offsets differ.
    delete_book(Book.objects.get(pk=ids[5]))
    titles = [str(number) for number in range(9) if number != 5]
    pages = {
        skip: list_titles(api.get("/api/books", params={"skip": skip, "limit": 3}, headers=headers))
        for skip in range(2, 10)
    }
    assert pages == {skip: titles[skip : skip + 3] for skip in pages}


def test_a_value_that_is_no_integer_or_out_of_bounds_is_refused(api: httpx.Client) -> None:
    problems = {
        "skip=": ("query.skip", "int_parsing"),
        "limit=1.0": ("query.limit", "int_parsing"),
        "skip=1&skip=abc": ("query.skip", "int_parsing"),
        "skip=5&skip=-1": ("query.skip", "greater_than_equal"),
        f"skip={-(10**30)}": ("query.skip", "greater_than_equal"),
        "limit=0": ("query.limit", "greater_than_equal"),
        "limit=5&limit=501": ("query.limit", "less_than_equal"),
        f"limit={'9' * 5000}": ("query.limit", "less_than_equal"),
    }
    responses = {query: api.get(f"/api/books?{query}") for query in problems}
    assert {query: list_problems(response) for query, response in responses.items()} == {
        query: [problem] for query, problem in problems.items()
    }


def test_all_problems_of_a_query_are_listed_together(api: httpx.Client) -> None:
    response = api.get("/api/books", params={"skip": -1, "limit": "many", "author": "a" * 501, "genre": "g" * 501})
    assert response.status_code == 422
    assert response.json() == {
        "detail": [
            {
                "loc": ["query", "skip"],
                "msg": "Input should be greater than or equal to 0.",
                "type": "greater_than_equal",
            },
            {"loc": ["query", "limit"], "msg": "Input should be a valid integer.", "type": "int_parsing"},
            {
                "loc": ["query", "author"],
                "msg": "Ensure this value has at most 500 characters (it has 501).",
                "type": "string_too_long",
            },
            {
                "loc": ["query", "genre"],
                "msg": "Ensure this value has at most 500 characters (it has 501).",
                "type": "string_too_long",
            },
        ]
    }


def test_unknown_parameters_are_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    for query in ("page=2", "SKIP=-1", "title=none", "%00=%00", "&&="):
        assert api.get(f"/api/books?{query}").json() == [book], query


def test_any_number_of_unknown_parameters_is_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    address = "/api/books?" + "&".join(f"p{number}" for number in range(5_000))
    assert api.get(address).json() == [book]
