"""What the corpus does not show of GET /api/books: its order, the bounds of a page, and deep pages."""

from datetime import UTC, datetime

import httpx
import pytest

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import create_book, delete_book
from tests.support.responses import list_problems


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()]


def test_the_list_is_ordered_by_id_whatever_changes(api: httpx.Client) -> None:
    assert api.get("/api/books").json() == []
    ids = [api.post("/api/books", json=build_book(title=title)).json()["id"] for title in "CAB"]
    api.put(f"/api/books/{ids[0]}", json={"title": "Z"})
    api.put(f"/api/books/{ids[1]}", json={"isbn": "0"})
    assert [book["id"] for book in api.get("/api/books").json()] == sorted(ids)


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


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "by-Django"}], ids=["compiled", "Django"])
def test_deep_pages_hold_every_book_once(
    api: httpx.Client, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond an offset of 1,000 another statement finds the page."""
    monkeypatch.setattr("books.api.v1.pagination.DEEP_OFFSET", 3)
    books = [create_book(title=str(number)) for number in range(9)]
    # A deleted book leaves a gap, so that ids and offsets differ.
    delete_book(books.pop(5))
    pages = {
        skip: list_titles(api.get("/api/books", params={"skip": skip, "limit": 3}, headers=headers))
        for skip in range(2, 10)
    }
    assert pages == {skip: [book.title for book in books[skip : skip + 3]] for skip in pages}


def test_a_value_beyond_all_bounds_is_refused(api: httpx.Client) -> None:
    problems = {
        f"skip={-(10**30)}": ("query.skip", "greater_than_equal"),
        "skip=5&skip=-1": ("query.skip", "greater_than_equal"),
        f"limit={'9' * 5000}": ("query.limit", "less_than_equal"),
        "limit=%D9%A1": ("query.limit", "int_parsing"),
    }
    for query, problem in problems.items():
        assert list_problems(api.get(f"/api/books?{query}")) == [problem]


def test_any_number_of_unknown_parameters_is_ignored(api: httpx.Client) -> None:
    address = "/api/books?%00=%00&&=&" + "&".join(f"p{number}" for number in range(5_000))
    assert api.get(address).json() == []
