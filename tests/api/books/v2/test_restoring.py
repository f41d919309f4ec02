"""Restore and revert: a deleted book comes back under its id, an earlier state as a change like others."""

import json
from functools import partial
from typing import Any

import httpx
import pytest

from books.models import Book, Change
from tests.support.books import build_book
from tests.support.history import NOBODY, list_entries, read_stored, summarize
from tests.support.pages import build_validation_error, parse_error
from webhooks.models import Event

BOOKS = "/api/v2/books"


@pytest.fixture
def states(api: httpx.Client, address: str) -> list[dict[str, Any]]:
    """The responses that showed the book at version 1, 2 and 3."""
    first = api.get(address).json()
    second = api.patch(address, json={"title": "Émma", "isbn": "978-0-14-143951-8", "available": False}).json()
    third = api.put(address, json=build_book(year=-44, author="Gaius")).json()
    return [first, second, third]


@pytest.fixture
def deleted_book(api: httpx.Client, address: str, states: list[dict[str, Any]]) -> dict[str, Any]:
    """The response that showed a book, at version 3, before it was deleted."""
    assert api.delete(address).status_code == 204
    return states[2]


def restore(client: httpx.Client, address: str, **options: Any) -> httpx.Response:
    return client.post(f"{address}/restore", **options)


def test_a_deleted_book_comes_back_as_it_was(api: httpx.Client, address: str, deleted_book: dict[str, Any]) -> None:
    # A body is not needed and not read.
    response = restore(api, address, content=b"{", headers={"Content-Type": "text/plain"})
    book = response.json()
    assert response.status_code == 201
    assert book == {**deleted_book, "version": 5, "updated_at": book["updated_at"]}
    assert book["updated_at"] > deleted_book["updated_at"]
    assert (response.headers["Location"], response.headers["ETag"]) == (address, f'"v2-{book["id"]}-5"')
    assert api.get(address).json() == book
    assert api.get(f"{BOOKS}?q=gaius&isbn={book['isbn']}").json()["results"] == [book]


@pytest.mark.usefixtures("deleted_book")
def test_a_restoration_has_its_own_event_and_history(api: httpx.Client, address: str, key: dict[str, str]) -> None:
    restored = restore(api, address, headers=key).json()
    event = json.loads(bytes(Event.objects.order_by("pk").last().body))  # type: ignore[union-attr]
    assert (event["event"], event["data"]) == ("book.created", {"book": restored, "previous": {}})
    entries = list_entries(api, f"{address}/history", key)
    assert summarize(entries) == [(5, "restored"), (4, "deleted"), (3, "changed"), (2, "changed"), (1, "created")]
    assert (entries[0]["channel"], entries[0]["before"], entries[0]["after"]) == ("v2", None, None)
    assert entries[0]["actor"] == {**NOBODY, "user": "ada", "api_key": "Test"}


@pytest.mark.usefixtures("deleted_book")
def test_a_book_that_is_there_is_a_conflict(api: httpx.Client, address: str, book: dict[str, Any]) -> None:
    restore(api, address)
    responses = [restore(api, address), restore(api, f"{BOOKS}/{book['id']}")]
    assert [parse_error(response) for response in responses] == [(409, "CONFLICT", [])] * 2
    assert responses[0].json()["error"]["message"] == "The book is not deleted"
    assert api.get(address).json()["version"] == 5


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_a_book_whose_deletion_is_not_known_is_not_found(api: httpx.Client, book: dict[str, Any]) -> None:
    """Older code deleted it."""
    Book._base_manager.all().delete()
    assert parse_error(restore(api, f"{BOOKS}/{book['id']}")) == (404, "NOT_FOUND", [])


def test_a_deleted_book_is_in_no_state(api: httpx.Client, address: str, deleted_book: dict[str, Any]) -> None:
    for etag in ("*", f'"v2-{deleted_book["id"]}-4"', "nonsense"):
        response = restore(api, address, headers={"If-Match": etag})
        assert parse_error(response) == (412, "PRECONDITION_FAILED", [])
        assert response.json()["error"]["message"] == "The state is another than the request asks for"
    assert api.get(address).status_code == 404


@pytest.mark.usefixtures("deleted_book")
def test_if_none_match_allows_what_does_not_exist(api: httpx.Client, address: str) -> None:
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 201
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 412
    assert restore(api, address, headers={"If-Match": '"other"'}).status_code == 412
    assert restore(api, address, headers={"If-Match": "*"}).status_code == 409


FIELDS = ("title", "author", "year", "isbn", "genre", "available")


def revert(client: httpx.Client, address: str, version: Any, **options: Any) -> httpx.Response:
    return client.post(f"{address}/revert", json={"version": version}, **options)


def select_fields(book: dict[str, Any]) -> dict[str, Any]:
    return {name: book[name] for name in FIELDS}


@pytest.mark.parametrize("version", [1, 2])
def test_a_book_gets_an_earlier_state(
    api: httpx.Client, address: str, states: list[dict[str, Any]], version: int
) -> None:
    response = revert(api, address, version)
    book = response.json()
    assert response.status_code == 200
    assert select_fields(book) == select_fields(states[version - 1])
    assert (book["version"], book["created_at"]) == (4, states[0]["created_at"])
    assert book["updated_at"] > states[2]["updated_at"]
    assert response.headers["ETag"] == f'"v2-{book["id"]}-4"'
    assert book["isbn13"] == states[version - 1]["isbn13"]
    assert api.get(address).json() == book
    assert api.get(f"{BOOKS}?title=mma").json()["results"] == ([book] if version == 2 else [])


def test_a_reversion_is_a_change_with_its_own_event_and_history(
    api: httpx.Client, address: str, states: list[dict[str, Any]], key: dict[str, str]
) -> None:
    reverted = revert(api, address, 2, headers=key).json()
    event = json.loads(bytes(Event.objects.order_by("pk").last().body))  # type: ignore[union-attr]
    changed = ("title", "author", "year", "isbn")
    assert (event["event"], event["data"]["book"]) == ("book.updated", reverted)
    assert event["data"]["previous"] == {name: states[2][name] for name in (*changed, "isbn13")}
    newest, *older = list_entries(api, f"{address}/history", key)
    assert (newest["version"], newest["kind"], newest["channel"]) == (4, "changed", "v2")
    assert newest["actor"] == {**NOBODY, "user": "ada", "api_key": "Test"}
    assert newest["before"] == {name: states[2][name] for name in changed}
    assert newest["after"] == {name: states[1][name] for name in changed}
    assert summarize(older) == [(3, "changed"), (2, "changed"), (1, "created")]


def test_a_blank_text_of_version_1_comes_back(api: httpx.Client) -> None:
    created = api.post("/api/books", json=build_book(title=" ")).json()
    address = f"{BOOKS}/{created['id']}"
    api.patch(address, json={"title": "Emma"})
    assert revert(api, address, 1).json()["title"] == " "


def test_a_version_that_never_was_is_refused(api: httpx.Client, address: str, states: list[dict[str, Any]]) -> None:
    for version in (4, 10**30):
        response = revert(api, address, version)
        assert parse_error(response) == build_validation_error("version")
        assert response.json()["error"]["details"][0]["message"] == "No state of the book with this version is known."
    assert api.get(address).json() == states[2]
    api.delete(address)
    api.post(f"{address}/restore")
    # That of the deletion.
    assert parse_error(revert(api, address, 4)) == build_validation_error("version")


def test_an_invalid_body_is_refused(api: httpx.Client, address: str) -> None:
    bodies: list[Any] = [
        {}, {"version": None}, {"version": "1"}, {"version": True}, {"version": 1.5}, {"version": 0},
        {"versions": 1}, {"version": 1, "title": "Emma"}, [],
    ]  # fmt: skip
    for body in bodies:
        assert parse_error(api.post(f"{address}/revert", json=body))[:2] == (422, "VALIDATION_ERROR"), body
    assert Change.objects.count() == 1


@pytest.mark.parametrize("is_deleted", [True, False])
def test_an_isbn_in_use_is_a_conflict_that_links_its_book(
    api: httpx.Client, address: str, states: list[dict[str, Any]], is_deleted: bool
) -> None:
    send = restore if is_deleted else partial(revert, version=1)
    if is_deleted:
        api.delete(address)
    holder = api.post(BOOKS, json=build_book(isbn=states[2 if is_deleted else 0]["isbn"])).json()
    before = read_stored()
    response = send(api, address)
    assert parse_error(response) == (409, "CONFLICT", ["isbn"])
    assert response.headers["Link"].partition(BOOKS)[2] == f'/{holder["id"]}>; rel="related"'
    assert read_stored() == before
    api.delete(f"{BOOKS}/{holder['id']}")
    assert send(api, address).is_success


def test_the_state_of_the_book_can_be_a_condition(
    api: httpx.Client, address: str, states: list[dict[str, Any]]
) -> None:
    first, third = (f'"v2-{states[0]["id"]}-{version}"' for version in (1, 3))
    refused = [
        revert(api, address, 1, headers={"If-Match": first}),
        revert(api, address, 3, headers={"If-Match": first}),
        revert(api, address, 1, headers={"If-None-Match": "*"}),
    ]
    assert [parse_error(response) for response in refused] == [(412, "PRECONDITION_FAILED", [])] * 3
    # An unknown version comes before the condition, and the condition before an isbn in use.
    assert revert(api, address, 9, headers={"If-Match": first}).status_code == 422
    api.post(BOOKS, json=build_book(isbn=states[0]["isbn"]))
    assert revert(api, address, 1, headers={"If-Match": first}).status_code == 412
    assert revert(api, address, 2, headers={"If-Match": third}).status_code == 200
