"""The stream of events over HTTP, as readers follow it. On PostgreSQL it shows what is committed, so tests commit."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event as Signal
from threading import Thread
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from books import changes
from tests.support import oauth_flows
from tests.support.books import new_book
from tests.support.endpoints import endpoint, key_for, listener
from webhooks import stream
from webhooks.models import Event
from webhooks.outbox import EventData, publish
from webhooks.stream import StreamCursor

EVENTS = "/api/v2/events"
PATIENCE = 30

pytestmark = pytest.mark.usefixtures("transactional_db")


@pytest.fixture
def by(transactional_db: None) -> dict[str, str]:
    return key_for(listener())


def added(title: str) -> None:
    with transaction.atomic():
        changes.add_book(new_book(title=title), now=timezone.now())


def read(api: httpx.Client, by: dict[str, str], **query: Any) -> dict[str, Any]:
    response = api.get(EVENTS, params=query, headers=by)
    assert response.status_code == 200, response.text
    page: dict[str, Any] = response.json()
    return page


def titles(page: dict[str, Any]) -> list[str]:
    return [event["data"]["book"]["title"] for event in page["results"]]


@contextmanager
def uncommitted(title: str) -> Iterator[None]:
    """A book that is added by somebody else, who commits at the end of the block."""
    added_it, may_commit = Signal(), Signal()

    def add_slowly() -> None:
        with transaction.atomic():
            added(title)
            added_it.set()
            may_commit.wait(PATIENCE)
        connection.close()

    slow = Thread(target=add_slowly)
    slow.start()
    try:
        assert added_it.wait(PATIENCE)
        yield
    finally:
        may_commit.set()
        slow.join()


def test_events_come_as_they_were_sent(api: httpx.Client, by: dict[str, str]) -> None:
    book = api.post("/api/v2/books", json=new_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    response = api.get(EVENTS, headers=by)
    page = response.json()
    bodies = [bytes(body) for body in Event.objects.order_by("pk").values_list("body", flat=True)]
    assert page == {"results": [json.loads(body) for body in bodies], "next": None, "cursor": page["cursor"]}
    assert b",".join(bodies) in response.content
    assert response.headers["Content-Type"] == "application/json"


def test_the_stream_is_followed_by_its_links(api: httpx.Client, by: dict[str, str]) -> None:
    for number in range(5):
        added(str(number))
    pages = [read(api, by, limit=2)]
    while following := pages[-1]["next"]:
        assert following.startswith(f"{settings.PUBLIC_URL}{EVENTS}?")
        pages.append(api.get(following, headers=by).json())
    assert [titles(page) for page in pages] == [["0", "1"], ["2", "3"], ["4"]]


def test_a_reader_goes_on_from_the_cursor(api: httpx.Client, by: dict[str, str]) -> None:
    nothing = read(api, by)
    assert (nothing["results"], nothing["next"]) == ([], None)
    added("first")
    first = read(api, by, after=nothing["cursor"])
    again = read(api, by, after=first["cursor"])
    added("second")
    second = read(api, by, after=again["cursor"])
    assert [titles(page) for page in (first, again, second)] == [["first"], [], ["second"]]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has one writer at a time.")
def test_who_commits_late_is_not_passed_over(api: httpx.Client, by: dict[str, str]) -> None:
    cursor = read(api, by)["cursor"]
    with uncommitted("slow"):
        added("fast")
        meanwhile = read(api, by, after=cursor)
    assert titles(meanwhile) == []
    assert titles(read(api, by, after=meanwhile["cursor"])) == ["slow", "fast"]


def test_pings_are_not_in_the_stream(api: httpx.Client, by: dict[str, str]) -> None:
    owner = listener("other")
    pinged = api.post(f"/api/v2/webhooks/{endpoint(owner).pk}/ping", headers=key_for(owner))
    assert pinged.status_code == 202
    assert read(api, by)["results"] == []


def test_a_reader_may_choose_kinds(api: httpx.Client, by: dict[str, str]) -> None:
    book = api.post("/api/v2/books", json=new_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    api.delete(f"/api/v2/books/{book['id']}")
    page = read(api, by, kinds="book.created,book.deleted", limit=1)
    rest = api.get(page["next"], headers=by).json()
    assert [event["event"] for event in page["results"] + rest["results"]] == ["book.created", "book.deleted"]
    assert read(api, by, kinds="book.updated", after=rest["cursor"])["results"] == []


def test_a_cursor_is_good_for_thirty_days(api: httpx.Client, by: dict[str, str]) -> None:
    added("old")
    recent = StreamCursor(0, 0, timezone.now() - timedelta(days=29)).encode()
    assert titles(read(api, by, after=recent)) == ["old"]
    old = StreamCursor(0, 0, timezone.now() - timedelta(days=31)).encode()
    response = api.get(EVENTS, params={"after": old}, headers=by)
    assert (response.status_code, response.json()["error"]["code"]) == (410, "GONE")


def test_who_begins_is_shown_the_last_thirty_days(api: httpx.Client, by: dict[str, str]) -> None:
    added("past")
    Event.objects.update(created_at=timezone.now() - timedelta(days=30, hours=6))
    added("kept")
    assert titles(read(api, by)) == ["kept"]


def test_who_began_at_the_oldest_event_can_go_on(api: httpx.Client, by: dict[str, str]) -> None:
    added("next")
    hours_ago = StreamCursor(0, 0, timezone.now() - timedelta(days=30, hours=6)).encode()
    assert titles(read(api, by, after=hours_ago)) == ["next"]


def test_the_cursor_of_who_keeps_asking_stays_good(api: httpx.Client, by: dict[str, str]) -> None:
    before = timezone.now()
    old = StreamCursor(0, 0, before - timedelta(days=29)).encode()
    assert StreamCursor.decode(read(api, by, after=old)["cursor"], stream.MAX_CURSOR_LENGTH).at >= before


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        *[
            ({"after": text}, 422, "after")
            for text in ("", "x", "é", "\0", "WzFd", "a" * 3000, "WzEsMSwiMjAyNi0wMS0wMVQwMDowMDowMCJd")
        ],
        ({"after": StreamCursor(-1, 1, datetime.now(UTC)).encode()}, 422, "after"),
        ({"after": StreamCursor(1, 2**63, datetime.now(UTC)).encode()}, 422, "after"),
        ({"limit": "0"}, 422, "limit"),
        ({"limit": "501"}, 422, "limit"),
        ({"kinds": ""}, 422, "kinds"),
        ({"kinds": "*"}, 422, "kinds"),
        ({"kinds": "test.ping"}, 422, "kinds"),
        ({"cursor": "x"}, 400, "cursor"),
    ],
)
def test_what_is_wrong_with_a_query_is_named(
    api: httpx.Client, by: dict[str, str], query: dict[str, str], status: int, field: str
) -> None:
    response = api.get(EVENTS, params=query, headers=by)
    assert response.status_code == status
    assert {detail["field"] for detail in response.json()["error"]["details"]} == {field}


def test_the_stream_needs_the_scope_whatever_is_open(api: httpx.Client) -> None:
    anonymous, reader = api.get(EVENTS), api.get(EVENTS, headers=key_for(oauth_flows.reader(), "read"))
    assert (anonymous.status_code, anonymous.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert (reader.status_code, reader.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert reader.headers["WWW-Authenticate"].endswith('error="insufficient_scope", scope="webhooks"')


@pytest.mark.parametrize("limit", [10, 500])
def test_a_page_costs_the_same_however_long_it_is(
    api: httpx.Client, by: dict[str, str], limit: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with transaction.atomic():
        publish([EventData("book.created", None, {}) for _ in range(100)], timezone.now())
    read(api, by)
    # The key, on PostgreSQL the horizon, the page, and where all of the stream ends.
    with django_assert_max_num_queries(4):
        page = read(api, by, limit=limit)
    assert len(page["results"]) == min(limit, 100)
