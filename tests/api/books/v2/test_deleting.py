"""DELETE /api/v2/books/{book_id}."""

from typing import Any

import httpx

from tests.support.books import build_book
from tests.support.pages import LIST_URL, list_ids


def test_a_deleted_book_is_gone_and_no_other(api: httpx.Client, address: str) -> None:
    other = api.post(LIST_URL, json=build_book()).json()
    # The body is ignored.
    response = api.request("DELETE", address, content=b"{", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.content, "Content-Type" in response.headers) == (204, b"", False)
    bodies = {"PUT": build_book(), "PATCH": {}}
    responses = [api.request(method, address, json=bodies.get(method)) for method in ("GET", "PUT", "PATCH", "DELETE")]
    responses.append(api.get(address.replace("/v2", "")))
    assert [(response.status_code, "Book not found" in response.text) for response in responses] == [(404, True)] * 5
    assert list_ids(api.get(LIST_URL)) == [other["id"]]


def test_the_id_of_a_deleted_book_is_never_used_again_but_its_isbn_may_be(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    api.delete(address)
    response = api.post(LIST_URL, json=build_book(isbn=stored_book["isbn"]))
    assert (response.status_code, response.json()["id"] > stored_book["id"]) == (201, True)
