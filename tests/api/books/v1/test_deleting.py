"""DELETE /api/books/{book_id}."""

from typing import Any

import httpx

from tests.support.books import build_book


def test_a_deleted_book_is_gone(api: httpx.Client, book: dict[str, Any]) -> None:
    address = f"/api/books/{book['id']}"
    answer = api.delete(address)
    assert (answer.status_code, answer.json()) == (200, {"message": "Book deleted successfully"})
    answers = [api.get(address), api.put(address, json={"year": 2000}), api.delete(address)]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(404, {"detail": "Book not found"})] * 3
    assert api.get("/api/books").json() == []


def test_only_the_book_named_is_deleted(api: httpx.Client, book: dict[str, Any]) -> None:
    other = api.post("/api/books", json=build_book()).json()
    api.delete(f"/api/books/{book['id']}")
    assert api.get("/api/books").json() == [other]


def test_the_id_of_a_deleted_book_is_never_used_again(api: httpx.Client) -> None:
    ids = []
    for _ in range(3):
        ids.append(api.post("/api/books", json=build_book()).json()["id"])
        api.delete(f"/api/books/{ids[-1]}")
    assert ids == sorted(set(ids))


def test_the_body_of_a_deletion_is_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.request("DELETE", f"/api/books/{book['id']}", content=b"{", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 200
