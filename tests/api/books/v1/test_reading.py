"""GET /api/books/{book_id}, and which texts are ids."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import list_problems
from tests.support.server import Service

METHODS = ["GET", "PUT", "DELETE"]


def test_a_book_is_answered_whole(api: httpx.Client) -> None:
    book = api.post("/api/books", json=build_book(isbn="9780141439518")).json()
    answer = api.get(f"/api/books/{book['id']}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == {
        "id": book["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": book["created_at"],
    }


def request_book(client: httpx.Client, method: str, book_id: str) -> httpx.Response:
    """Sends a request for a book, with a body for PUT."""
    return client.request(method, f"/api/books/{book_id}", content=b'{"year": 2000}' if method == "PUT" else None)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "book_id",
    [
        pytest.param("987654321", id="no such book"),
        pytest.param("0", id="zero"),
        pytest.param("-0", id="minus zero"),
        pytest.param("-5", id="negative"),
        pytest.param(str(2**31), id="over 32 bits"),
        pytest.param(str(2**63 - 1), id="the largest of 64 bits"),
        pytest.param(str(2**63), id="over 64 bits"),
        pytest.param(str(-(2**63)), id="the least of 64 bits"),
        pytest.param(str(-(2**63) - 1), id="under 64 bits"),
        pytest.param(str(10**30), id="10**30"),
        pytest.param("9" * 5000, id="5,000 digits"),
        pytest.param("-" + "9" * 5000, id="5,000 digits below zero"),
    ],
)
def test_an_integer_that_names_no_book_is_not_found(
    api: httpx.Client, book: dict[str, Any], method: str, book_id: str
) -> None:
    answer = request_book(api, method, book_id)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Book not found"})
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "book_id",
    ["abc", "+5", "1.0", "1e3", "0x1", "1_0", "--1", "-", "1-", "%20", "%201", "1%20", "1%0A", "%00", "null", "true"],
)
def test_an_id_that_is_no_integer_is_refused(
    api: httpx.Client, book: dict[str, Any], method: str, book_id: str
) -> None:
    answer = request_book(api, method, book_id)
    assert (answer.status_code, list_problems(answer)) == (422, [("path.book_id", "int_parsing")])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "book_id",
    [
        pytest.param("١", id="Arabic digit"),
        pytest.param("１", id="full-width digit"),
        pytest.param("²", id="superscript"),
        pytest.param("−1", id="typographic minus"),
        pytest.param("%FF", id="no UTF-8"),
    ],
)
def test_digits_other_than_ascii_are_no_integer(service: Service, method: str, book_id: str) -> None:
    with service.open_client() as client:
        answer = request_book(client, method, book_id)
    assert (answer.status_code, list_problems(answer)) == (422, [("path.book_id", "int_parsing")])


def test_leading_zeros_change_nothing(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/00{book['id']}"
    assert api.get(address).json() == book
    assert api.put(address, json={"year": 2000}).json() == {**book, "year": 2000}
    assert api.delete(address).json() == {"message": "Book deleted successfully"}


def test_five_thousand_leading_zeros_change_nothing(api: httpx.Client, book: dict[str, Any]) -> None:
    assert api.get(f"/api/books/{'0' * 5000}{book['id']}").json() == book
