"""POST /api/v2/books/{id}/restore: a deleted book comes back under its old id."""

import json
from typing import Any

import httpx
import pytest

from books.models import Book, Change
from tests.support.books import build_book
from tests.support.history import NOBODY, list_entries, summarize
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.pages import parse_error
from webhooks.models import Event

BOOKS = "/api/v2/books"


@pytest.fixture
def deleted_book(api: httpx.Client) -> dict[str, Any]:
    """The response that showed a book, at version 2, before it was deleted."""
    created = api.post(BOOKS, json=build_book(title="Émma", isbn="978-0-14-143951-8", year=-44)).json()
    book: dict[str, Any] = api.patch(f"{BOOKS}/{created['id']}", json={"available": False}).json()
    assert api.delete(f"{BOOKS}/{created['id']}").status_code == 204
    return book


@pytest.fixture
def address(deleted_book: dict[str, Any]) -> str:
    return f"{BOOKS}/{deleted_book['id']}"


def restore(client: httpx.Client, address: str, **options: Any) -> httpx.Response:
    return client.post(f"{address}/restore", **options)


def test_a_deleted_book_comes_back_as_it_was(api: httpx.Client, address: str, deleted_book: dict[str, Any]) -> None:
    response = restore(api, address)
    book = response.json()
    assert response.status_code == 201
    assert book == {**deleted_book, "version": 4, "updated_at": book["updated_at"]}
    assert book["updated_at"] > deleted_book["updated_at"]
    assert (response.headers["Location"], response.headers["ETag"]) == (address, f'"v2-{book["id"]}-4"')
    assert api.get(address).json() == book
    assert api.get(f"{BOOKS}?q=émma&isbn=9780141439518").json()["results"] == [book]


def test_every_way_to_change_it_works_again(api: httpx.Client, address: str) -> None:
    restore(api, address)
    assert api.patch(address, json={"year": 1}, headers={"If-Match": f'"v2-{address[14:]}-4"'}).status_code == 200
    assert api.delete(address).status_code == 204
    # A body is not needed and not read.
    restored = restore(api, address, content=b'{"title": "Emma"', headers={"Content-Type": "text/plain"}).json()
    assert (restored["title"], restored["version"]) == ("Émma", 7)


def test_a_restoration_has_its_own_event_and_history(api: httpx.Client, address: str) -> None:
    key = create_key_header(create_librarian("ada"))
    restored = restore(api, address, headers=key).json()
    event = json.loads(bytes(Event.objects.order_by("pk").last().body))  # type: ignore[union-attr]
    assert (event["event"], event["data"]) == ("book.created", {"book": restored, "previous": {}})
    entries = list_entries(api, f"{address}/history", key)
    assert summarize(entries) == [(4, "restored"), (3, "deleted"), (2, "changed"), (1, "created")]
    assert (entries[0]["channel"], entries[0]["before"], entries[0]["after"]) == ("v2", None, None)
    assert entries[0]["actor"] == {**NOBODY, "user": "ada", "api_key": "Test"}


def test_a_book_that_is_there_is_a_conflict(api: httpx.Client, address: str, book: dict[str, Any]) -> None:
    restore(api, address)
    responses = [restore(api, address), restore(api, f"{BOOKS}/{book['id']}")]
    assert [parse_error(response) for response in responses] == [(409, "CONFLICT", [])] * 2
    assert responses[0].json()["error"]["message"] == "The book is not deleted"
    assert api.get(address).json()["version"] == 4


def test_a_book_that_never_existed_is_not_found(api: httpx.Client) -> None:
    for path in ("0/restore", "-1/restore?dry_run=true", f"{'9' * 30}/restore"):
        for headers in ({}, {"If-Match": "*"}):
            assert parse_error(api.post(f"{BOOKS}/{path}", headers=headers)) == (404, "NOT_FOUND", []), path


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_a_book_whose_deletion_is_not_known_is_not_found(api: httpx.Client, book: dict[str, Any]) -> None:
    """Older code deleted it."""
    Book._base_manager.all().delete()
    assert parse_error(restore(api, f"{BOOKS}/{book['id']}")) == (404, "NOT_FOUND", [])


def test_an_isbn_in_use_is_a_conflict_that_links_its_book(
    api: httpx.Client, address: str, deleted_book: dict[str, Any]
) -> None:
    holder = api.post(BOOKS, json=build_book(isbn=deleted_book["isbn"])).json()
    response = restore(api, address)
    assert parse_error(response) == (409, "CONFLICT", ["isbn"])
    assert response.headers["Link"].partition(BOOKS)[2] == f'/{holder["id"]}>; rel="related"'
    assert api.get(address).status_code == 404
    assert not Change.objects.filter(kind=Change.Kind.RESTORED).exists()
    api.delete(f"{BOOKS}/{holder['id']}")
    assert restore(api, address).status_code == 201


def test_a_deleted_book_is_in_no_state(api: httpx.Client, address: str, deleted_book: dict[str, Any]) -> None:
    for etag in ("*", f'"v2-{deleted_book["id"]}-3"', "nonsense"):
        response = restore(api, address, headers={"If-Match": etag})
        assert parse_error(response) == (412, "PRECONDITION_FAILED", [])
        assert response.json()["error"]["message"] == "The state is another than the request asks for"
    assert api.get(address).status_code == 404


def test_if_none_match_allows_what_does_not_exist(api: httpx.Client, address: str) -> None:
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 201
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 412
    assert restore(api, address, headers={"If-Match": '"other"'}).status_code == 412
    assert restore(api, address, headers={"If-Match": "*"}).status_code == 409
