"""Events and their deliveries, which are stored in the transaction of the change."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from books.book_values import BookValues
from books.models import Book
from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import create_endpoint, create_owner
from webhooks.models import Delivery, Endpoint, Event
from webhooks.outbox import EventData, NoTransaction, publish

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def list_bodies() -> list[dict[str, Any]]:
    """The bodies of all events, oldest first."""
    return [json.loads(bytes(body)) for body in Event.objects.order_by("pk").values_list("body", flat=True)]


def test_an_event_contains_the_book_as_version_2_shows_it(api: httpx.Client) -> None:
    book = api.post("/api/v2/books", json=build_book(isbn="978-0-14-143951-8")).json()
    [body] = list_bodies()
    event = Event.objects.get()
    assert body == {
        "id": str(event.uuid),
        "event": "book.created",
        "timestamp": book["created_at"],
        "api_version": 2,
        "data": {"book": book, "previous": {}},
    }
    assert (event.kind, event.subject, UUID(body["id"]).version) == ("book.created", book["id"], 4)
    for version in ("", "/v2"):
        before = api.get(f"/api/v2/books/{book['id']}").json()
        api.put(f"/api{version}/books/{book['id']}", json=build_book(title=f"Emma{version}"))
        after, body = api.get(f"/api/v2/books/{book['id']}").json(), list_bodies()[-1]
        changed = [name for name in before if before[name] != after[name] and name not in ("version", "updated_at")]
        assert body["data"] == {"book": after, "previous": {name: before[name] for name in changed}}
        assert body["timestamp"] == after["updated_at"]
    api.delete(f"/api/v2/books/{book['id']}")
    body = list_bodies()[-1]
    assert (body["event"], body["data"]) == ("book.deleted", {"book": after, "previous": {}})


def test_an_event_needs_a_transaction(transactional_db: None) -> None:
    with pytest.raises(NoTransaction):
        publish([EventData("book.created", 1, {})], NOW)
    assert not Event.objects.exists()


@pytest.mark.unrecorded
def test_seeded_books_are_announced_with_the_events_option(db: None) -> None:
    call_command("seed_books", count=30, events=True)
    assert Event.objects.filter(kind="book.created").count() == Book.objects.count() == 30


def test_an_endpoint_is_sent_the_kinds_it_subscribed_to(api: httpx.Client) -> None:
    owner, created, updated, deleted = create_owner(), "book.created", "book.updated", "book.deleted"
    expected = {"*": [created, updated, deleted], updated: [updated], f"{created} {deleted}": [created, deleted]}
    endpoints = {kinds: create_endpoint(owner, kinds=kinds) for kinds in expected}
    book = api.post("/api/v2/books", json=build_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    api.delete(f"/api/v2/books/{book['id']}")
    for kinds, endpoint in endpoints.items():
        deliveries = Delivery.objects.filter(endpoint=endpoint).order_by("event")
        assert [delivery.event.kind for delivery in deliveries] == expected[kinds]
        assert {(row.state, row.replay, row.attempted, row.lease) for row in deliveries} == {("waiting", 0, 0, None)}


def test_endpoints_of_inactive_owners_are_sent_nothing(api: httpx.Client) -> None:
    for name in ("gone", "away"):
        create_endpoint(create_owner(name))
    User.objects.get(username="gone").delete()
    User.objects.filter(username="away").update(is_active=False)
    api.post("/api/v2/books", json=build_book())
    assert (Event.objects.count(), Delivery.objects.count()) == (1, 0)


def test_a_change_takes_the_same_number_of_queries_for_any_number_of_endpoints(api: httpx.Client) -> None:
    owner, numbers = create_owner(), set()
    for endpoints in (1, 5):
        for _ in range(endpoints):
            create_endpoint(owner)
        # The first change finds out that somebody listens.
        api.post("/api/v2/books", json=build_book())
        with CaptureQueriesContext(connection) as queries:
            api.post("/api/v2/books", json=build_book())
        numbers.add(len(queries))
    assert (len(numbers), Delivery.objects.count()) == (1, 14)


@pytest.fixture
def check_deliveries(book: dict[str, Any]) -> Callable[[Callable[[], object]], None]:
    """A function that checks that a write of one event has a delivery only where an endpoint is active."""
    endpoint = create_endpoint()

    def check(write: Callable[[], object]) -> None:
        for state, deliveries in (("active", 1), ("disabled", 0), ("deleted", 0)):
            Endpoint.objects.filter(pk=endpoint.pk).update(state=state)
            savepoint = transaction.savepoint()
            before = Event.objects.count()
            write()
            assert (Event.objects.count(), Delivery.objects.count()) == (before + 1, deliveries), state
            transaction.savepoint_rollback(savepoint)

    return check


@pytest.mark.parametrize(
    ("compiled", "method", "address", "body"),
    [
        (True, "POST", "/books", build_book()),
        (False, "PATCH", "/books/{}", {"year": 1}),
        (True, "PATCH", "/books/{}", {"year": 1}),
        (True, "DELETE", "/books/{}", None),
        (True, "POST", "/books/bulk", {"operations": [{"op": "create", "book": build_book()}]}),
    ],
)
def test_only_active_endpoints_get_deliveries(
    api: httpx.Client,
    book: dict[str, Any],
    settings: Settings,
    check_deliveries: Any,
    compiled: bool,
    method: str,
    address: str,
    body: object,
) -> None:
    settings.COMPILED_PATH = compiled
    path = f"/api/v2{address.format(book['id'])}"
    check_deliveries(lambda: api.request(method, path, json=body))


def mark_lent(books: Mapping[int, BookValues]) -> None:
    pairs = [(book, book._replace(**book.find_changes({"available": False}, NOW))) for book in books.values()]
    changes.change_books(pairs, ACTOR, NOW)


def test_only_active_endpoints_get_deliveries_of_many_books(check_deliveries: Any) -> None:
    check_deliveries(lambda: changes.create_books([build_book()], ACTOR, NOW))
    check_deliveries(lambda: mark_lent(changes.lock_books(Book.objects.values_list("pk", flat=True))))
    check_deliveries(lambda: changes.delete_books([*changes.lock_books([Book.objects.get().pk]).values()], ACTOR, NOW))


WRITES = {
    "create": ("POST", "/api/v2/books", build_book(isbn="LOC 17"), {}),
    "change": ("PATCH", "/api/v2/books/{}", {"year": 1}, {}),
    "change of a version": ("PATCH", "/api/v2/books/{}", {"year": 1}, {"If-Match": '"v2-{}-1"'}),
    "delete": ("DELETE", "/api/v2/books/{}", None, {}),
}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no statement with several parts")
@pytest.mark.parametrize(
    ("write", "compiled"), [*((write, True) for write in WRITES), ("change", False), ("delete", False)]
)
def test_a_change_its_event_and_its_deliveries_are_one_statement(
    api: httpx.Client, settings: Settings, book: dict[str, Any], write: str, compiled: bool
) -> None:
    settings.COMPILED_PATH = compiled
    method, address, body, headers = WRITES[write]
    create_endpoint()
    events = Event.objects.count()
    filled_headers = {name: text.format(book["id"]) for name, text in headers.items()}
    with CaptureQueriesContext(connection) as queries:
        assert api.request(method, address.format(book["id"]), json=body, headers=filled_headers).is_success
    assert (Event.objects.count(), Delivery.objects.count()) == (events + 1, 1)
    assert sum("INTO webhooks_event" in query["sql"] for query in queries) == 1
