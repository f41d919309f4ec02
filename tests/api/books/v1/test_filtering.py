"""GET /api/books with author and genre."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import list_problems


def test_an_empty_filter_matches_all(api: httpx.Client, book: dict[str, Any]) -> None:
    blank_book = api.post("/api/books", json=build_book(author="", genre="")).json()
    assert api.get("/api/books?author=&genre").json() == [book, blank_book]


def test_a_book_must_match_both_filters(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book(author="Jane Austen", genre="Letters"))
    api.post("/api/books", json=build_book(author="Mary Shelley", genre="Novel"))
    match = api.post("/api/books", json=build_book(author="Jane Austen", genre="Novel")).json()
    assert api.get("/api/books", params={"author": "austen", "genre": "novel"}).json() == [match]


def test_the_author_filter_searches_authors_only(api: httpx.Client) -> None:
    api.post("/api/books", json=build_book(title="Austen", author="Homer", genre="Austen", isbn="Austen"))
    assert api.get("/api/books", params={"author": "Austen"}).json() == []


def test_a_filtered_list_is_paged_too(api: httpx.Client) -> None:
    books = [api.post("/api/books", json=build_book(author=author)).json() for author in ("Ann", "Bo", "ANNE", "Hanna")]
    response = api.get("/api/books", params={"author": "ann", "skip": 1, "limit": 1})
    assert response.json() == [books[2]]


@pytest.mark.parametrize("name", ["author", "genre"])
def test_a_filter_with_nul_is_refused(api: httpx.Client, name: str) -> None:
    response = api.get(f"/api/books?{name}=a%00")
    assert (response.status_code, list_problems(response)) == (422, [(f"query.{name}", "value_error")])
