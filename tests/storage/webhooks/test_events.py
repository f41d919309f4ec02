"""The stream of events over HTTP. On PostgreSQL it contains committed events only, so the tests commit."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Event as Signal
from threading import Thread
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from books.writing import changes
from library_site.db.sql import execute
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import create_made_endpoint, create_owner
from tests.support.history import explain
from tests.support.oauth_flows import create_key_header
from webhooks import stream
from webhooks.models import Event
from webhooks.outbox import EventData, publish
from webhooks.stream import StreamCursor

EVENTS = "/api/v2/events"
TIMEOUT = 30

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def key_header(transactional_db: None) -> dict[str, str]:
    return create_key_header(create_owner(), "webhooks")


def add_book(title: str) -> None:
    with transaction.atomic():
        changes.create_book(build_book(title=title), ACTOR, now=timezone.now())


def read_page(api: httpx.Client, key_header: dict[str, str], **query: Any) -> dict[str, Any]:
    response = api.get(EVENTS, params=query, headers=key_header)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def list_titles(page: dict[str, Any]) -> list[str]:
    return [event["data"]["book"]["title"] for event in page["results"]]


@contextmanager
def start_slow_writer(title: str) -> Iterator[None]:
    """Adds a book in another thread, whose transaction commits at the end of the block."""
    is_added, may_commit = Signal(), Signal()

    def add_slowly() -> None:
        with transaction.atomic():
            add_book(title)
            is_added.set()
            may_commit.wait(TIMEOUT)
        connection.close()

    writer = Thread(target=add_slowly)
    writer.start()
    try:
        assert is_added.wait(TIMEOUT)
        yield
    finally:
        may_commit.set()
        writer.join()


def test_events_are_the_bodies_that_receivers_get(api: httpx.Client, key_header: dict[str, str]) -> None:
    book = api.post("/api/v2/books", json=build_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    response = api.get(EVENTS, headers=key_header)
    page = response.json()
    bodies = [bytes(body) for body in Event.objects.order_by("pk").values_list("body", flat=True)]
    assert page == {"results": [json.loads(body) for body in bodies], "next": None, "cursor": page["cursor"]}
    assert b",".join(bodies) in response.content
    assert response.headers["Content-Type"] == "application/json"


def test_a_reader_continues_from_the_cursor_and_along_the_links(api: httpx.Client, key_header: dict[str, str]) -> None:
    empty = read_page(api, key_header)
    assert (empty["results"], empty["next"]) == ([], None)
    add_book("first")
    first = read_page(api, key_header, after=empty["cursor"])
    unchanged = read_page(api, key_header, after=first["cursor"])
    for title in ("second", "third", "fourth"):
        add_book(title)
    second = read_page(api, key_header, after=unchanged["cursor"], limit=2)
    assert second["next"].startswith(f"{settings.PUBLIC_URL}{EVENTS}?")
    third = api.get(second["next"], headers=key_header).json()
    pages = [list_titles(page) for page in (first, unchanged, second, third)]
    assert (pages, third["next"]) == ([["first"], [], ["second", "third"], ["fourth"]], None)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")
def test_an_event_that_commits_late_is_not_skipped(api: httpx.Client, key_header: dict[str, str]) -> None:
    cursor = read_page(api, key_header)["cursor"]
    with start_slow_writer("slow"):
        add_book("fast")
        page = read_page(api, key_header, after=cursor)
    assert list_titles(page) == []
    assert list_titles(read_page(api, key_header, after=page["cursor"])) == ["slow", "fast"]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")
def test_an_event_with_a_lower_id_of_a_later_transaction_is_not_skipped(
    api: httpx.Client, key_header: dict[str, str]
) -> None:
    """The first transaction has its number before it writes, and ends while the second one goes on."""
    cursor = read_page(api, key_header)["cursor"]
    with ExitStack() as stack:
        with transaction.atomic():
            execute("SELECT pg_current_xact_id()")
            stack.enter_context(start_slow_writer("second"))
            add_book("first")
        page = read_page(api, key_header, after=cursor)
    assert list_titles(page) == ["first"]
    assert list_titles(read_page(api, key_header, after=page["cursor"])) == ["second"]
    assert list_titles(read_page(api, key_header, after=cursor)) == ["first", "second"]


def test_pings_are_not_in_the_stream(api: httpx.Client, key_header: dict[str, str]) -> None:
    owner = create_owner("other")
    headers = create_key_header(owner, "webhooks")
    ping = api.post(f"/api/v2/webhooks/{create_made_endpoint(owner).pk}/ping", headers=headers)
    assert ping.status_code == 202
    assert read_page(api, key_header)["results"] == []


def test_a_reader_may_choose_kinds(api: httpx.Client, key_header: dict[str, str]) -> None:
    book = api.post("/api/v2/books", json=build_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    api.delete(f"/api/v2/books/{book['id']}")
    for kinds in (["book.created", "book.deleted"], ["book.created,book.deleted"]):
        page = read_page(api, key_header, kinds=kinds, limit=1)
        rest = api.get(page["next"], headers=key_header).json()
        assert [event["event"] for event in page["results"] + rest["results"]] == ["book.created", "book.deleted"]
    assert read_page(api, key_header, kinds="book.updated", after=rest["cursor"])["results"] == []


def test_events_are_shown_and_a_cursor_is_good_for_thirty_days(api: httpx.Client, key_header: dict[str, str]) -> None:
    """And some hours more, for a reader that began at the oldest event. That of a regular reader does not expire."""
    add_book("past")
    Event.objects.update(created_at=timezone.now() - timedelta(days=30, hours=6))
    add_book("old")
    assert list_titles(read_page(api, key_header)) == ["old"]
    before = timezone.now()
    ages = [timedelta(days=29), timedelta(days=30, hours=6), timedelta(days=31)]
    recent, hours_ago, old = (StreamCursor(0, 0, before - age).encode() for age in ages)
    page = read_page(api, key_header, after=recent)
    assert list_titles(page) == list_titles(read_page(api, key_header, after=hours_ago)) == ["past", "old"]
    assert StreamCursor.decode(page["cursor"]).read_at >= before
    response = api.get(EVENTS, params={"after": old}, headers=key_header)
    assert (response.status_code, response.json()["error"]["code"]) == (410, "GONE")


def publish_event(title: str) -> Event:
    with transaction.atomic():
        publish([EventData("book.created", None, {"book": {"title": title}})], timezone.now())
    return Event.objects.latest("pk")


def lose(*events: Event) -> None:
    """Deletes the events, as a failover to a replica that had not received them does."""
    Event.objects.filter(pk__in=[event.pk for event in events]).delete()


@pytest.mark.parametrize("number", [0, 1])
def test_a_reader_whose_last_event_was_lost_begins_anew(
    api: httpx.Client, key_header: dict[str, str], number: int
) -> None:
    """A database that went back gives its numbers again. A reader whose last event is still there goes on."""
    publish_event("kept")
    kept = read_page(api, key_header)["cursor"]
    lost = [publish_event("lost"), publish_event("lost")]
    cursors = [
        read_page(api, key_header, **query)["cursor"]
        for query in ({}, {"after": kept, "limit": 1}, {"kinds": "book.deleted"})
    ]
    lose(*lost)
    again = lost[number]
    Event.objects.filter(pk=publish_event("new").pk).update(id=again.pk, transaction=again.transaction)
    for cursor in cursors:
        response = api.get(EVENTS, params={"after": cursor}, headers=key_header)
        assert (response.status_code, response.json()["error"]["code"]) == (410, "GONE")
    assert list_titles(read_page(api, key_header, after=kept)) == ["new"]
    assert list_titles(read_page(api, key_header)) == ["kept", "new"]


def test_a_cursor_of_an_earlier_release_is_known_by_its_position(api: httpx.Client, key_header: dict[str, str]) -> None:
    events = [publish_event("first"), publish_event("second")]
    first, second = (StreamCursor(event.transaction, event.pk, timezone.now()).encode() for event in events)
    assert list_titles(read_page(api, key_header, after=first)) == ["second"]
    lose(events[1])
    assert api.get(EVENTS, params={"after": second}, headers=key_header).status_code == 410


def test_a_reader_goes_on_when_its_last_event_has_expired(api: httpx.Client, key_header: dict[str, str]) -> None:
    event = publish_event("expired")
    cursor = read_page(api, key_header)["cursor"]
    lose(event)
    empty = read_page(api, key_header, after=cursor)
    assert (empty["results"], empty["next"]) == ([], None)
    new = publish_event("new")
    pages = [read_page(api, key_header, after=after) for after in (cursor, empty["cursor"])]
    assert list(map(list_titles, pages)) == [["new"], ["new"]]
    # Where no event was left because all were lost, the numbers begin again.
    Event.objects.filter(pk=new.pk).update(id=event.pk, transaction=event.transaction)
    assert api.get(EVENTS, params={"after": cursor}, headers=key_header).status_code == 410
    assert list_titles(read_page(api, key_header, after=empty["cursor"])) == ["new"]


def test_after_a_restored_backup_readers_begin_anew(api: httpx.Client, key_header: dict[str, str]) -> None:
    add_book("before")
    cursor = read_page(api, key_header)["cursor"]
    Event.objects.update(transaction=2**62 if connection.vendor == "postgresql" else 0)
    stream.restart_stream(timezone.now())
    add_book("after")
    assert api.get(EVENTS, params={"after": cursor}, headers=key_header).status_code == 410
    page = read_page(api, key_header)
    assert list_titles(page) == ["before", "after"]
    add_book("later")
    assert list_titles(read_page(api, key_header, after=page["cursor"])) == ["later"]


def test_a_page_of_any_length_takes_the_same_number_of_queries(
    api: httpx.Client, key_header: dict[str, str], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with transaction.atomic():
        publish([EventData("book.created", None, {}) for _ in range(20)], timezone.now())
    read_page(api, key_header)
    for limit in (2, 500):
        # The key, on PostgreSQL the horizon of the stream, the page, and the end of the stream.
        with django_assert_max_num_queries(4):
            page = read_page(api, key_header, limit=limit)
        assert len(page["results"]) == min(limit, 20)


def test_a_page_is_found_along_the_index_of_the_stream() -> None:
    now = timezone.now()
    with CaptureQueriesContext(connection) as queries:
        stream.read_event_page(StreamCursor(0, 5, now), ["book.created"], 10, now)
    for mark, bound in (("LIMIT 11", "id>?"), ("webhooks_restoration", "id<?")):
        [statement] = [query["sql"] for query in queries if mark in query["sql"]]
        plan = explain(statement, "seqscan", "bitmapscan")
        assert "event_in_the_stream" in plan
        assert not any(mark in plan for mark in ("Sort", "TEMP B-TREE"))
        # On SQLite a range of the first column would be the whole stream.
        assert connection.vendor == "postgresql" or f"(transaction=? AND {bound}" in plan
