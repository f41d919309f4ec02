"""A filter that was added narrows the list, exports and operations, and is documented."""

import httpx
import pytest

from books.models import Book
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations

BOOKS = "/api/v2/books"


@pytest.fixture(autouse=True)
def books(api: httpx.Client) -> None:
    for year in (1813, 1815):
        api.post(BOOKS, json=build_book(year=year))


def list_years(api: httpx.Client, query: str) -> list[int]:
    return [book["year"] for book in api.get(f"{BOOKS}?{query}").json()["results"]]


def test_the_list_is_narrowed_by_it(api: httpx.Client) -> None:
    assert list_years(api, "year=1815") == [1815]
    assert list_years(api, "year=1815&title=emma") == []
    assert api.get(f"{BOOKS}?year=x").json()["error"]["details"][0]["field"] == "year"
    assert len(api.get("/api/books?year=1815").json()) == 2
    lines = api.get(f"{BOOKS}?year=1815", headers={"Accept": "text/csv"}).text.splitlines()
    assert len(lines) == 2


def test_operations_choose_books_by_it(api: httpx.Client) -> None:
    key = create_key_header(create_librarian("librarian", "Head librarians"))
    api.post("/api/v2/operations", json={"kind": "delete", "filter": {"year": 1815}}, headers=key)
    run_operations()
    assert list(Book.objects.values_list("year", flat=True)) == [1813]


def test_it_is_documented(api: httpx.Client) -> None:
    document = api.get("/openapi/v2.json").json()
    assert "year" in [parameter["name"] for parameter in document["paths"][BOOKS]["get"]["parameters"]]
    assert document["components"]["schemas"]["BookFilter"]["properties"]["year"] == {"type": "integer"}
