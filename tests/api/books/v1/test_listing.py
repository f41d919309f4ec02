"""GET /api/books: which part of the collection, and in which order."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.responses import list_problems


def list_titles(response: httpx.Response) -> list[str]:
    return [book["title"] for book in response.json()]


@pytest.fixture
def stored_titles(api: httpx.Client) -> list[str]:
    """The titles of 501 books, in the order of their creation."""
    names = [f"Volume {number}" for number in range(501)]
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


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("limit=1", slice(0, 1)),
        ("limit=500", slice(0, 500)),
        ("limit=007", slice(0, 7)),
        ("skip=0", slice(0, 100)),
        ("skip=-0", slice(0, 100)),
        ("skip=7", slice(7, 107)),
        ("skip=7&limit=3", slice(7, 10)),
        ("skip=499&limit=500", slice(499, 501)),
        ("skip=500", slice(500, 501)),
        ("skip=501", slice(0, 0)),
        (f"skip={2**63 - 1}", slice(0, 0)),
        (f"skip={2**63}", slice(0, 0)),
        (f"skip={10**30}", slice(0, 0)),
        (f"skip={'9' * 5000}", slice(0, 0)),
        ("skip=-1&skip=5&limit=2", slice(5, 7)),
        ("limit=0&limit=5", slice(0, 5)),
        ("limit=abc&limit=5", slice(0, 5)),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_skip_and_limit_select_a_part(api: httpx.Client, stored_titles: list[str], query: str, part: slice) -> None:
    response = api.get(f"/api/books?{query}")
    assert (response.status_code, list_titles(response)) == (200, stored_titles[part])


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "by-Django"}], ids=["compiled", "Django"])
def test_deep_pages_hold_every_book_once(api: httpx.Client, headers: dict[str, str]) -> None:
    """Beyond an offset of 1,000 another statement finds the page."""
    changes.create_books([build_book(title=str(number)) for number in range(1_012)], ACTOR, now=datetime.now(UTC))
    # A deleted book leaves a gap, so that ids and offsets differ.
    api.delete(f"/api/books/{api.get('/api/books?skip=1003&limit=1').json()[0]['id']}")
    titles = [str(number) for number in range(1_012) if number != 1_003]
    pages = {
        skip: list_titles(api.get("/api/books", params={"skip": skip, "limit": 3}, headers=headers))
        for skip in range(998, 1_013)
    }
    assert pages == {skip: titles[skip : skip + 3] for skip in pages}


NO_INTEGERS = ["", "abc", "1.0", "1e2", "%2B1", "+1", "%201", "1%20", "0x1", "1_0", "%00", "%D9%A1", "null", "-"]


@pytest.mark.parametrize("name", ["skip", "limit"])
@pytest.mark.parametrize("text", NO_INTEGERS)
def test_a_value_that_is_no_integer_is_refused(api: httpx.Client, name: str, text: str) -> None:
    response = api.get(f"/api/books?{name}={text}")
    assert (response.status_code, list_problems(response)) == (422, [(f"query.{name}", "int_parsing")])


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("skip=-1", ("query.skip", "greater_than_equal")),
        (f"skip={-(10**30)}", ("query.skip", "greater_than_equal")),
        ("skip=5&skip=-1", ("query.skip", "greater_than_equal")),
        ("skip=1&skip=", ("query.skip", "int_parsing")),
        ("limit=0", ("query.limit", "greater_than_equal")),
        ("limit=-1", ("query.limit", "greater_than_equal")),
        ("limit=501", ("query.limit", "less_than_equal")),
        (f"limit={10**30}", ("query.limit", "less_than_equal")),
        (f"limit={'9' * 5000}", ("query.limit", "less_than_equal")),
        ("limit=5&limit=501", ("query.limit", "less_than_equal")),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_value_out_of_bounds_is_refused(api: httpx.Client, query: str, problem: tuple[str, str]) -> None:
    response = api.get(f"/api/books?{query}")
    assert (response.status_code, list_problems(response)) == (422, [problem])


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


@pytest.mark.parametrize("query", ["page=2", "offset=1", "SKIP=-1", "title=none", "id=0", "year=abc", "%00=%00", "&&="])
def test_unknown_parameters_are_ignored(api: httpx.Client, book: dict[str, Any], query: str) -> None:
    response = api.get(f"/api/books?{query}")
    assert (response.status_code, response.json()) == (200, [book])


def test_any_number_of_unknown_parameters_is_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    address = "/api/books?" + "&".join(f"p{number}" for number in range(5_000))
    assert api.get(address).json() == [book]
