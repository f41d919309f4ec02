"""PUT /api/books/{book_id}."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import list_problems, parse_refusal

OTHERS = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "9780141439587", "genre": "Comedy"}


def test_a_changed_book_is_answered_whole(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.put(f"/api/books/{book['id']}", json=OTHERS)
    assert answer.status_code == 200
    assert answer.json() == {
        "id": book["id"],
        "title": "Emma",
        "author": "J. Austen",
        "year": 1815,
        "isbn": "9780141439587",
        "genre": "Comedy",
        "available": True,
        "created_at": book["created_at"],
    }
    assert api.get(f"/api/books/{book['id']}").json() == answer.json()


@pytest.mark.parametrize("name", OTHERS)
def test_only_the_members_present_change(api: httpx.Client, book: dict[str, Any], name: str) -> None:
    answer = api.put(f"/api/books/{book['id']}", json={name: OTHERS[name]})
    assert (answer.status_code, answer.json()) == (200, {**book, name: OTHERS[name]})
    assert api.get(f"/api/books/{book['id']}").json() == {**book, name: OTHERS[name]}


def test_only_the_book_named_changes(api: httpx.Client, book: dict[str, Any]) -> None:
    other = api.post("/api/books", json=build_book()).json()
    api.put(f"/api/books/{book['id']}", json=OTHERS)
    assert api.get(f"/api/books/{other['id']}").json() == other


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({}, id="empty object"),
        pytest.param({"id": 77}, id="id"),
        pytest.param({"available": False}, id="available"),
        pytest.param({"created_at": "2000-01-01T00:00:00.000000"}, id="created_at"),
        pytest.param({"version": 9, "author_folded": "x", "shelf": None, "Title": "x"}, id="unknown members"),
    ],
)
def test_a_body_without_a_books_members_changes_nothing(
    api: httpx.Client, book: dict[str, Any], body: dict[str, Any]
) -> None:
    answer = api.put(f"/api/books/{book['id']}", json=body)
    assert (answer.status_code, answer.json()) == (200, book)
    assert api.get("/api/books").json() == [book]


def test_a_book_may_be_sent_back_as_it_was_read(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.put(f"/api/books/{book['id']}", json=book)
    assert (answer.status_code, answer.json()) == (200, book)


def test_a_book_keeps_its_own_isbn(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.put(f"/api/books/{book['id']}", json={"isbn": book["isbn"], "year": 2000})
    assert (answer.status_code, answer.json()) == (200, {**book, "year": 2000})


def test_the_isbn_of_another_book_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    other = api.post("/api/books", json=build_book()).json()
    answer = api.put(f"/api/books/{book['id']}", json={"title": "Another", "isbn": other["isbn"]})
    assert parse_refusal(answer) == (409, ["detail"])
    assert api.get("/api/books").json() == [book, other]


def test_a_body_with_a_problem_changes_nothing(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.put(f"/api/books/{book['id']}", json={"title": "Another", "year": "1984"})
    assert answer.status_code == 422
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"year": 2000}', id="good"),
        pytest.param(b'{"year": "1984"}', id="wrong type"),
        pytest.param(b"{", id="malformed"),
        pytest.param(b"", id="empty"),
        pytest.param(b"[]", id="no object"),
        pytest.param(b'{"isbn": "in use"}', id="isbn in use"),
    ],
)
def test_an_unknown_book_is_not_found_whatever_the_body(api: httpx.Client, body: bytes) -> None:
    api.post("/api/books", json=build_book(isbn="in use"))
    answer = api.put("/api/books/987654321", content=body)
    assert (answer.status_code, answer.json()) == (404, {"detail": "Book not found"})


def test_a_change_never_makes_a_book(api: httpx.Client) -> None:
    assert api.put("/api/books/987654321", json=build_book()).status_code == 404
    assert api.get("/api/books").json() == []


def test_a_bad_id_and_a_bad_body_are_listed_together(api: httpx.Client) -> None:
    answer = api.put("/api/books/first", json={"year": "1984"})
    assert list_problems(answer) == [("path.book_id", "int_parsing"), ("body.year", "int_type")]


@pytest.mark.parametrize(
    ("body", "problem"), [(b"{", "json_invalid"), (b"", "missing"), (b"[]", "model_attributes_type")]
)
def test_a_bad_id_and_invalid_json_are_listed_together(api: httpx.Client, body: bytes, problem: str) -> None:
    answer = api.put("/api/books/first", content=body)
    assert list_problems(answer) == [("path.book_id", "int_parsing"), ("body", problem)]
