"""POST /api/v2/books/{id}/restore: a deleted book comes back under its old id."""

import json
from functools import partial
from typing import Any

import httpx
import pytest
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from books.models import Book, Change
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.concurrency import start_concurrently
from tests.support.history import NOBODY, list_entries, summarize
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.pages import build_validation_error, parse_error
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
    assert api.put(address.replace("/v2", ""), json={"year": 2}).json()["year"] == 2
    assert api.delete(address).status_code == 204
    assert restore(api, address).json()["version"] == 8


def test_a_restoration_has_its_own_event_and_history(api: httpx.Client, address: str) -> None:
    key = create_key_header(create_librarian("ada"))
    restored = restore(api, address, headers=key).json()
    event = json.loads(bytes(Event.objects.order_by("pk").last().body))  # type: ignore[union-attr]
    assert (event["event"], event["data"]) == ("book.created", {"book": restored, "previous": {}})
    entries = list_entries(api, f"{address}/history", key)
    assert summarize(entries) == [(4, "restored"), (3, "deleted"), (2, "changed"), (1, "created")]
    assert (entries[0]["channel"], entries[0]["before"], entries[0]["after"]) == ("v2", None, None)
    assert entries[0]["actor"] == {**NOBODY, "user": "ada", "api_key": "Test"}


def test_a_body_is_not_needed_and_not_read(api: httpx.Client, address: str) -> None:
    text = {"Content-Type": "text/plain"}
    assert restore(api, address, content=b'{"title": "Emma"', headers=text).json()["title"] == "Émma"


def test_a_book_that_is_there_is_a_conflict(api: httpx.Client, address: str, book: dict[str, Any]) -> None:
    restore(api, address)
    responses = [restore(api, address), restore(api, f"{BOOKS}/{book['id']}")]
    assert [parse_error(response) for response in responses] == [(409, "CONFLICT", [])] * 2
    assert responses[0].json()["error"]["message"] == "The book is not deleted"
    assert api.get(address).json()["version"] == 4


def test_a_book_that_another_request_restores_first_is_a_conflict(api: httpx.Client, book: dict[str, Any]) -> None:
    for _ in range(2):
        with pytest.raises(changes.BookExists):
            changes.restore_book(book["id"], ACTOR, timezone.now())
        api.delete(f"{BOOKS}/{book['id']}")
        restore(api, f"{BOOKS}/{book['id']}")


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_restorations_at_a_time_finds_the_book_there() -> None:
    """It read the deleted book before the first one ended, and would else say that another book has the isbn."""
    now = timezone.now()
    pk = changes.create_book(build_book(), ACTOR, now).id
    changes.delete_book(pk, lambda _: None, ACTOR, now)
    with transaction.atomic():
        changes.restore_book(pk, ACTOR, now)
        second = start_concurrently(partial(changes.restore_book, pk, ACTOR, now))
    with pytest.raises(changes.BookExists):
        second.result()
    assert Book.objects.values_list("version", flat=True).get(pk=pk) == 3


@pytest.mark.parametrize("pk", ["0", "-1", "987654321", "9" * 30])
@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_book_that_never_existed_is_not_found(api: httpx.Client, address: str, pk: str, query: str) -> None:
    responses = [api.post(f"{BOOKS}/{pk}/restore{query}", headers=header) for header in ({}, {"If-Match": "*"})]
    assert [parse_error(response) for response in responses] == [(404, "NOT_FOUND", [])] * 2


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_a_book_whose_deletion_is_not_known_is_not_found(api: httpx.Client, book: dict[str, Any]) -> None:
    """Older code deleted it."""
    Book._base_manager.all().delete()
    assert parse_error(restore(api, f"{BOOKS}/{book['id']}")) == (404, "NOT_FOUND", [])


def test_a_malformed_id_is_named(api: httpx.Client) -> None:
    assert parse_error(restore(api, f"{BOOKS}/first")) == build_validation_error("book_id")


def test_an_unknown_parameter_is_refused(api: httpx.Client, address: str) -> None:
    assert parse_error(restore(api, address, params={"dry_run": "1"})) == (400, "UNKNOWN_PARAMETER", ["dry_run"])


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


@pytest.mark.parametrize("etag", ["*", '"v2-{id}-2"', '"v2-{id}-3"', "nonsense"])
def test_a_deleted_book_is_in_no_state(
    api: httpx.Client, address: str, deleted_book: dict[str, Any], etag: str
) -> None:
    response = restore(api, address, headers={"If-Match": etag.format(**deleted_book)})
    assert parse_error(response) == (412, "PRECONDITION_FAILED", [])
    assert response.json()["error"]["message"] == "The state is another than the request asks for"
    assert api.get(address).status_code == 404


def test_if_none_match_allows_what_does_not_exist(api: httpx.Client, address: str) -> None:
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 201
    assert restore(api, address, headers={"If-None-Match": "*"}).status_code == 412
    assert restore(api, address, headers={"If-Match": '"other"'}).status_code == 412
    assert restore(api, address, headers={"If-Match": "*"}).status_code == 409


@pytest.mark.parametrize(("policy", "status"), [("open", 201), ("protect-writes", 401), ("protected", 401)])
def test_it_needs_what_other_changes_need(
    api: httpx.Client, settings: Settings, address: str, policy: str, status: int
) -> None:
    settings.LIBRARY_ACCESS = policy
    librarian = create_librarian()
    headers = [create_key_header(librarian, "read"), {}, create_key_header(librarian, "write")]
    expected = [403, status, 409 if policy == "open" else 201]
    assert [restore(api, address, headers=header).status_code for header in headers] == expected
