"""Events and their deliveries, which are stored in the transaction of the change."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any
from uuid import UUID

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import InternalError, OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from books.book_values import BookValues
from books.models import Book
from books.writing import changes
from library_site.db.sql import execute
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import create_endpoint, create_owner
from webhooks.models import Delivery, Endpoint, Event
from webhooks.outbox import NOTIFY_CHANNEL, EventData, NoTransaction, publish, worker_notifier

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


@pytest.mark.parametrize("compiled", [True, False])
def test_a_change_of_nothing_publishes_no_event_and_wakes_no_worker(
    api: httpx.Client,
    book: dict[str, Any],
    settings: Settings,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    compiled: bool,
) -> None:
    settings.COMPILED_PATH = compiled
    create_endpoint()
    with django_capture_on_commit_callbacks() as callbacks:
        assert api.patch(f"/api/v2/books/{book['id']}", json={"title": book["title"]}).status_code == 200
        assert api.put(f"/api/books/{book['id']}", json={"title": book["title"]}).status_code == 200
        assert api.put(f"/api/books/{book['id']}", json={"year": "no year"}).status_code == 422
        assert api.post("/api/books", json=build_book(isbn=book["isbn"])).status_code == 409
    assert len(list_bodies()) == 1
    assert worker_notifier.notify not in callbacks


def test_a_rolled_back_change_publishes_no_event(transactional_db: None) -> None:
    with transaction.atomic():
        changes.create_book(build_book(), ACTOR, now=NOW)
        transaction.set_rollback(True)
    assert not Event.objects.exists()


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
def check_notifications(
    book: dict[str, Any], django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> Callable[[Callable[[], object]], None]:
    """A function that checks that a write of one event wakes workers only where an endpoint is active."""
    endpoint = create_endpoint()

    def check(write: Callable[[], object]) -> None:
        for state, deliveries in (("active", 1), ("disabled", 0), ("deleted", 0)):
            Endpoint.objects.filter(pk=endpoint.pk).update(state=state)
            savepoint = transaction.savepoint()
            before = Event.objects.count()
            with django_capture_on_commit_callbacks() as callbacks:
                write()
            assert Event.objects.count() == before + 1
            assert (Delivery.objects.count(), callbacks.count(worker_notifier.notify)) == (deliveries, deliveries), (
                state
            )
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
def test_workers_are_woken_for_deliveries_alone(
    api: httpx.Client,
    book: dict[str, Any],
    settings: Settings,
    check_notifications: Any,
    compiled: bool,
    method: str,
    address: str,
    body: object,
) -> None:
    settings.COMPILED_PATH = compiled
    path = f"/api/v2{address.format(book['id'])}"
    check_notifications(lambda: api.request(method, path, json=body))


def mark_lent(books: Mapping[int, BookValues]) -> None:
    pairs = [(book, book._replace(**book.find_changes({"available": False}, NOW))) for book in books.values()]
    changes.change_books(pairs, ACTOR, NOW)


def test_workers_are_woken_for_deliveries_of_many_books_alone(check_notifications: Any) -> None:
    check_notifications(lambda: changes.create_books([build_book()], ACTOR, NOW))
    check_notifications(lambda: mark_lent(changes.lock_books(Book.objects.values_list("pk", flat=True))))
    check_notifications(
        lambda: changes.delete_books([*changes.lock_books([Book.objects.get().pk]).values()], ACTOR, NOW)
    )


@pytest.fixture
def listener(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[BaseDatabaseWrapper]:
    """A second connection, which listens as a worker does."""
    monkeypatch.setattr(worker_notifier, "notified_at", 0.0)
    listener = connection.copy()
    listener.cursor().execute(f"LISTEN {NOTIFY_CHANNEL}")
    yield listener
    listener.close()


def receive_notifications(listener: BaseDatabaseWrapper) -> int:
    """Returns the number of notifications so far."""
    execute(f"NOTIFY {NOTIFY_CHANNEL}, 'the last one'")
    notifications = iter(listener.connection.notifies())
    return sum(1 for _ in takewhile(lambda notification: notification.payload != "the last one", notifications))


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no notifications.")
@pytest.mark.parametrize("compiled", [True, False])
def test_a_worker_that_listens_is_notified_of_deliveries(
    api: httpx.Client, settings: Settings, listener: BaseDatabaseWrapper, compiled: bool
) -> None:
    settings.COMPILED_PATH = compiled
    api.post("/api/books", json=build_book())
    assert receive_notifications(listener) == 0
    create_endpoint()
    api.post("/api/books", json=build_book())
    assert receive_notifications(listener) == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no notifications.")
@pytest.mark.parametrize(
    ("compiled", "failure"),
    [
        (True, OperationalError("the connection is lost")),
        (False, InternalError("no space in the queue")),
        (True, OSError()),
    ],
)
def test_a_failing_notification_fails_no_change(
    api: httpx.Client, settings: Settings, listener: BaseDatabaseWrapper, compiled: bool, failure: Exception
) -> None:
    settings.COMPILED_PATH = compiled
    create_endpoint()
    refused = []

    def refuse_notifications(execute: Any, sql: str, *arguments: Any) -> Any:
        if sql.startswith("NOTIFY"):
            refused.append(sql)
            raise failure
        return execute(sql, *arguments)

    with connection.execute_wrapper(refuse_notifications):
        created = api.post("/api/v2/books", json=build_book())
    assert (created.status_code, len(refused)) == (201, 1)
    assert api.get(f"/api/v2/books/{created.json()['id']}").json() == created.json()
    assert Delivery.objects.values_list("event__subject", "state").get() == (created.json()["id"], "waiting")


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
