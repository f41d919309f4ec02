"""Version 1, case by case: the specification's Section 4, and what was decided where it is silent."""

from typing import Any

import httpx

from tests.books.examples import new_book


def test_a_created_book_is_answered_whole(api: httpx.Client) -> None:
    answer = api.post("/api/books", json=new_book(isbn="9780141439518"))
    created = answer.json()
    assert answer.status_code == 201
    assert created == {
        "id": created["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created["created_at"],
    }
    assert answer.headers["Location"] == f"/api/books/{created['id']}"
    assert api.get(answer.headers["Location"]).json() == created


def test_a_deleted_book_is_gone(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.delete(f"/api/books/{book['id']}")
    assert (answer.status_code, answer.json()) == (200, {"message": "Book deleted successfully"})
    assert api.get(f"/api/books/{book['id']}").status_code == 404
