"""GET /api/v2/books/{id}/history and GET /api/v2/changes: who changed which book, through what, and what it was."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIRequestFactory

from books.api.v2.history import HistoryViewSet
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, Change
from books.writing import changes
from books.writing.merging import merge_books
from library_site.api.pagination import NewestFirstPagination
from oauth.models import APIKey
from tests.support.books import build_book
from tests.support.credentials import create_token_header
from tests.support.history import CHANGES, NOBODY, list_entries, summarize
from tests.support.oauth_flows import create_confidential_app, create_key_header, create_librarian
from tests.support.pages import build_validation_error, forge_cursor, parse_error, walk_pages
from tests.support.sources import create_source
from webhooks.outbox import format_event_time

BOOKS = "/api/v2/books"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
INVALID_TIMES = [
    "", "2026-01-31", "2026-01-31T12:00:00", "12:00:00Z", "2026-01-31 12:00:00Z", "2026-02-30T12:00:00Z", "1769860800",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "yesterday",
]  # fmt: skip
ADDRESSES = [f"{BOOKS}/{{id}}/history", CHANGES]


@pytest.fixture(params=ADDRESSES)
def history_address(request: pytest.FixtureRequest, stored_book: dict[str, Any]) -> str:
    """The address of each list, about a book that was created."""
    template: str = request.param
    return template.format(id=stored_book["id"])


def get_time(change: Change) -> str:
    return format_event_time(change.at)


def test_each_change_of_a_book_is_an_entry(api: httpx.Client, key: dict[str, str]) -> None:
    created = api.post(BOOKS, json=build_book(isbn="978-0-14-143951-8"), headers=key).json()
    address, book = f"{BOOKS}/{created['id']}", Book.objects.get()
    api.patch(address, json={"year": 1814, "available": False, "title": "Émma"})
    api.delete(address, headers=key)
    times = [get_time(change) for change in Change.objects.order_by("version")]
    by_ada = {**NOBODY, "user": "ada", "api_key": "Test"}
    fields = {
        "title": "Émma",
        "author": "Jane Austen",
        "year": 1814,
        "isbn": "978-0-14-143951-8",
        "genre": "Novel",
        "available": False,
        "created_at": format_event_time(book.created_at),
    }
    common = {"channel": "v2", "actor": by_ada, "operation": None, "before": None, "after": None}
    expected: list[dict[str, Any]] = [
        {**common, "version": 3, "kind": "deleted", "at": times[2], "before": fields},
        {
            **common,
            "version": 2,
            "kind": "changed",
            "at": times[1],
            "actor": NOBODY,
            "before": {"title": "Pride and Prejudice", "year": 1813, "available": True},
            "after": {"title": "Émma", "year": 1814, "available": False},
        },
        {**common, "version": 1, "kind": "created", "at": times[0]},
    ]
    assert format_event_time(NOON) == "2026-01-31T12:00:00.000000Z"
    response = api.get(f"{address}/history", headers=key)
    assert (response.status_code, response.json()) == (200, {"results": expected, "next": None, "previous": None})
    assert [list(entry["before"] or {}) for entry in response.json()["results"][:2]] == [
        list(fields),
        ["title", "year", "available"],
    ]
    recent = api.get(CHANGES, headers=key).json()
    assert recent == {
        "results": [{"book": book.pk, **entry} for entry in expected],
        "next": None,
        "previous": None,
    }


def test_the_entry_of_a_merged_book_names_the_one_that_replaces_it(api: httpx.Client, key: dict[str, str]) -> None:
    actor = get_or_create_actor(Actor.Channel.COMMAND)
    kept, merged = (changes.create_book(build_book(isbn=isbn), actor, NOON).id for isbn in ("1", "2"))
    merge_books(kept, {kept: 1, merged: 1}, {}, actor, NOON)
    last = list_entries(api, f"{BOOKS}/{merged}/history", key)[0]
    assert (last["kind"], last["before"]["isbn"], last["after"]) == ("merged", "2", {"merged_into": kept})


def test_an_entry_names_who_made_the_change(api: httpx.Client, librarian: User, key: dict[str, str]) -> None:
    app = create_confidential_app("bookshop")
    source = create_source("north")
    api.post("/api/books", json=build_book())
    api.post(BOOKS, json=build_book(), headers=create_token_header(librarian, client_id=app.client_id))
    api.post(f"{BOOKS}/bulk", json={"operations": [{"op": "create", "book": build_book()}]}, headers=key)
    changes.create_book(build_book(), get_or_create_actor(Actor.Channel.MIRROR, source_id=source.pk), timezone.now())
    entries = list_entries(api, CHANGES, key)
    assert [(entry["channel"], entry["actor"]) for entry in entries] == [
        ("mirror", {**NOBODY, "source": "north"}),
        ("bulk", {**NOBODY, "user": "ada", "api_key": "Test"}),
        ("v2", {**NOBODY, "user": "ada", "app": "Bookshop"}),
        ("v1", NOBODY),
    ]
    assert [entry["operation"] is None for entry in entries] == [True, False, True, True]
    assert entries[1]["operation"] == Change.objects.get(operation__isnull=False).operation_id


@pytest.mark.unrecorded
def test_a_book_without_history_has_no_entries(api: httpx.Client, key: dict[str, str]) -> None:
    """It is older than the history, or comes from `seed_books`."""
    changes.create_books([build_book()], None, timezone.now())
    assert list_entries(api, f"{BOOKS}/{Book.objects.get().pk}/history", key) == []


def test_pages_have_each_change_once(
    api: httpx.Client, key: dict[str, str], address: str, history_address: str
) -> None:
    for year in range(6):
        api.patch(address, json={"year": year}).raise_for_status()
    api.headers.update(key)
    pages = list(walk_pages(api, f"{history_address}?limit=3"))
    assert [[entry["version"] for entry in page["results"]] for page in pages] == [[7, 6, 5], [4, 3, 2], [1]]
    assert pages[0]["previous"] is None
    pages_back = list(walk_pages(api, pages[-1]["previous"], "previous"))
    assert [page["results"] for page in pages_back] == [page["results"] for page in reversed(pages[:-1])]
    assert api.get(pages_back[0]["next"]).json()["results"] == pages[-1]["results"]


def test_an_invalid_cursor_is_named(api: httpx.Client, key: dict[str, str], history_address: str) -> None:
    contents: list[Any] = [
        None, 7, [], {}, [True], [False, "1"], [0, 1], [False, 1, 1], [False, 1.5], [False, 2**63], [False, -(2**63)],
        [False, 2**63 - 1], [False, "2026-01-31T12:00:00Z", 1], [False, "2026-01-31", 1], [False, "noon", 1],
        [False, "2026-01-31T12:00:00", 2**63 - 1], [False, "2026-01-31T12:00:00", None], b"\xff", b"[false,", b"",
        ["id", False, 1, 1],
    ]  # fmt: skip
    texts = ["", "é", "a" * 201, "%00", *map(forge_cursor, contents)]
    responses = [api.get(history_address, params={"cursor": text}, headers=key) for text in texts]
    assert [parse_error(response) for response in responses] == [build_validation_error("cursor")] * len(texts)


def test_the_first_and_the_last_possible_cursor_are_valid(api: httpx.Client, key: dict[str, str], address: str) -> None:
    cursors = [
        (f"{address}/history", [False, 2**63 - 2]),
        (f"{address}/history", [True, 2 - 2**63]),
        (CHANGES, [False, "9999-12-31T23:59:59.999999", 1]),
        (CHANGES, [True, "0001-01-01T00:00:00", 1]),
    ]
    found = [list_entries(api, f"{path}?cursor={forge_cursor(content)}", key) for path, content in cursors]
    assert [summarize(entries) for entries in found] == [[(1, "created")]] * len(cursors)


def test_each_filter_selects_changes(api: httpx.Client, librarian: User, key: dict[str, str]) -> None:
    other_key = create_key_header(create_librarian("grace"))
    created = [api.post(BOOKS, json=build_book(title=title), headers=key).json() for title in ("A", "B")]
    api.patch(f"{BOOKS}/{created[0]['id']}", json={"year": 1}, headers=other_key)
    api.put(f"/api/books/{created[1]['id']}", json={"year": 2}, headers=key)
    api.delete(f"{BOOKS}/{created[0]['id']}", headers=other_key)
    times = {change.version: get_time(change) for change in Change.objects.filter(book_id=created[0]["id"])}

    def list_filtered(**filters: str) -> list[tuple[int, int]]:
        response = api.get(CHANGES, params=filters, headers=key)
        assert response.status_code == 200, response.text
        return [(entry["book"] - created[0]["id"], entry["version"]) for entry in response.json()["results"]]

    assert list_filtered(actor="ada") == [(1, 2), (1, 1), (0, 1)]
    assert list_filtered(actor="grace") == [(0, 3), (0, 2)]
    assert list_filtered(actor="Test") == list_filtered() == [(0, 3), (1, 2), (0, 2), (1, 1), (0, 1)]
    assert list_filtered(actor="") == list_filtered()
    assert list_filtered(actor="Ada") == list_filtered(actor="ad") == list_filtered(actor="%") == []
    assert list_filtered(channel="v1") == [(1, 2)]
    assert list_filtered(channel="mirror") == []
    assert list_filtered(kind="created") == [(1, 1), (0, 1)]
    assert list_filtered(kind="deleted", actor="grace") == [(0, 3)]
    assert list_filtered(kind="deleted", actor="ada", channel="v2") == []
    assert list_filtered(since=times[2]) == [(0, 3), (1, 2), (0, 2)]
    assert list_filtered(until=times[2]) == [(1, 1), (0, 1)]
    assert list_filtered(since=times[2], until=times[3], channel="v2") == [(0, 2)]
    assert list_filtered(since=times[3], until=times[2]) == []


def test_times_may_have_any_offset(api: httpx.Client, key: dict[str, str]) -> None:
    changes.create_book(build_book(), get_or_create_actor(Actor.Channel.COMMAND), NOON)
    counts = {
        "2026-01-31T13:00:00+01:00": 1,
        "2026-01-31T06:59:59-05:00": 1,
        "2026-01-31T12:00:00.000000001Z": 1,
        "2026-01-31T12:00:00.000001Z": 0,
        "0001-01-01T00:00:00Z": 1,
        "9999-12-31T23:59:59Z": 0,
    }
    assert {since: len(list_entries(api, f"{CHANGES}?since={quote(since)}", key)) for since in counts} == counts


def test_an_invalid_filter_is_named(api: httpx.Client, key: dict[str, str]) -> None:
    values = {
        "actor": ["\0", "a" * 256],
        "channel": ["", "V2", "\ud7ff"],
        "kind": ["", "2", "updated"],
        "since": INVALID_TIMES,
        "until": INVALID_TIMES[:1],
    }
    queries = [{name: value, "limit": "0"} for name, texts in values.items() for value in texts]
    errors = [parse_error(api.get(CHANGES, params=query, headers=key)) for query in queries]
    assert errors == [build_validation_error(*query) for query in queries]


def test_the_history_is_stored_by_no_cache(api: httpx.Client, key: dict[str, str], history_address: str) -> None:
    assert api.get(history_address, headers=key).headers["Cache-Control"] == "no-store"


def test_a_name_stays_as_it_was_when_the_change_was_made(
    api: httpx.Client, librarian: User, key: dict[str, str]
) -> None:
    created = api.post(BOOKS, json=build_book(), headers=key).json()
    User.objects.filter(pk=librarian.pk).update(username="lovelace")
    APIKey.objects.update(name="Renamed")
    api.patch(f"{BOOKS}/{created['id']}", json={"year": 1}, headers=key)
    entries = list_entries(api, f"{BOOKS}/{created['id']}/history", key)
    assert [(entry["actor"]["user"], entry["actor"]["api_key"]) for entry in entries] == [("ada", "Test")] * 2


def test_a_pagination_of_another_class_counts(stored_book: dict[str, Any]) -> None:
    own: Any = type("Own", (NewestFirstPagination,), {"get_extra_fields": lambda _: {"shelf": 1}})
    request = APIRequestFactory().get(BOOKS, headers=create_key_header(create_librarian()))
    subclass: Any = type("Subclass", (HistoryViewSet,), {"pagination_class": own})
    for view, options in ((subclass, {}), (HistoryViewSet, {"pagination_class": own})):
        response = view.as_view({"get": "retrieve"}, **options)(request, book_id=str(stored_book["id"]))
        assert (response.status_code, response.data["shelf"]) == (200, 1)
