"""The changes of all books, filtered."""

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from books.admin.book import recent_changes
from books.history.actors import ActorRef, record_operation
from books.models import Actor, Operation
from books.writing import changes
from tests.support.admin_pages import follow_link, list_badges, read_text, read_words
from tests.support.books import build_book
from tests.support.books_admin import (
    RECENT_CHANGES,
    add_actor,
    change_book,
    create_book,
    delete_book,
    list_entries,
)
from tests.support.oauth_flows import create_key_header

NIGHT = datetime(2026, 1, 31, 3, tzinfo=UTC)
MORNING = datetime(2026, 1, 31, 9, tzinfo=UTC)


@pytest.fixture
def changed_books(db: None) -> ActorRef:
    """Changes of several people, apps and times. Returns an operation."""
    operation = record_operation("import", add_actor(Actor.Channel.IMPORT, source_name="North"), NIGHT)
    changes.create_book(build_book(title="Old"), operation, NIGHT)
    changes.create_book(build_book(title="Ancient"), operation, NIGHT)
    changes.create_book(build_book(title="Early"), add_actor(Actor.Channel.V2, app_name="Bindery"), MORNING)
    key = add_actor(Actor.Channel.V2, user_name="ada", app_name="Bindery", api_key_name="Till")
    book = create_book(title="Emma", actor=key)
    change_book(book, actor=add_actor(Actor.Channel.ADMIN, user_name="ada"), year=1815)
    delete_book(book, actor=add_actor(Actor.Channel.V1))
    return operation


EMMA = "Emma (deleted)"
FILTERS = [
    ("", [(EMMA, 3), (EMMA, 2), (EMMA, 1), ("Early", 1), ("Ancient", 1)]),
    ("user=ada", [(EMMA, 2), (EMMA, 1)]),
    ("app=Bindery", [(EMMA, 1), ("Early", 1)]),
    ("api_key=Till", [(EMMA, 1)]),
    ("source=North", [("Ancient", 1)]),
    ("channel=v2", [(EMMA, 1), ("Early", 1)]),
    ("kind=created&user=ada", [(EMMA, 1)]),
    ("since=2026-01-31T09:00&until=2026-01-31T09:01", [("Early", 1)]),
    ("until=2026-01-31T09:00", [("Ancient", 1)]),
    ("operation={}", [("Ancient", 1), ("Old", 1)]),
    ("operation=4711", []),
]


def test_recent_changes_are_filtered(librarian: Client, changed_books: ActorRef) -> None:
    addresses = [f"{RECENT_CHANGES}?{query.format(changed_books.operation_id)}" for query, _entries in FILTERS]
    assert [list_entries(librarian.get(address)) for address in addresses] == [entries for _query, entries in FILTERS]


def test_pages_follow_each_other_and_keep_the_filters(
    librarian: Client, changed_books: ActorRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_changes, "PAGE_SIZE", 1)
    # An operation is one line, unless its changes are asked for.
    for query, expected in (FILTERS[0], FILTERS[9]):
        pages = [librarian.get(f"{RECENT_CHANGES}?{query.format(changed_books.operation_id)}")]
        for _ in expected[1:]:
            pages.append(follow_link(librarian, pages[-1], "Older"))
        assert [entry for page in pages for entry in list_entries(page)] == expected
        assert pages[-1].context["pager"].page.next_key is None
        assert list_entries(follow_link(librarian, pages[-1], "Newest")) == expected[:1]


@pytest.mark.usefixtures("changed_books")
def test_what_no_filter_takes_is_explained(librarian: Client) -> None:
    overflows = ["since=0001-01-01T00:00%2B01:00", "until=9999-12-31T23:59-01:00", f"operation={'9' * 5000}"]
    for query in ("kind=gone", "channel=v9", "since=x", "operation=-1", "user=%00", *overflows):
        response: Any = librarian.get(f"{RECENT_CHANGES}?{query}")
        assert list(response.context["form"].errors) == [query.partition("=")[0]]
        assert 'class="errorlist"' in read_text(response)
        assert list_entries(response) == []


def test_lends_and_returns_are_kinds_of_their_own(librarian: Client) -> None:
    book = create_book(title="Emma")
    change_book(book, available=False)
    change_book(book, available=True)
    change_book(book, available=False, year=1816)
    change_book(book, year=1815)
    found = {
        kind: [version for _title, version in list_entries(librarian.get(f"{RECENT_CHANGES}?kind={kind}"))]
        for kind in ("created", "lent", "taken back", "changed")
    }
    assert found == {"created": [1], "lent": [2], "taken back": [3], "changed": [5, 4]}
    assert list_badges(librarian.get(RECENT_CHANGES)) == ["Changed", "Changed", "Taken back", "Lent", "Added"]


def test_a_request_of_a_program_says_what_it_did(librarian: Client, api: httpx.Client) -> None:
    books = [create_book(title=f"Book {number}") for number in range(3)]
    headers = create_key_header(User.objects.create_superuser("ada"), "read write delete")
    additions = [{"op": "create", "book": build_book(title=f"New {number}")} for number in range(4)]
    edits = [{"op": "update", "id": book.pk, "book": {"genre": "Saga"}} for book in books]
    deletions = [{"op": "delete", "id": books[2].pk}]
    again = [{"op": "update", "id": books[0].pk, "book": {"genre": text}} for text in ("Epic", "Saga")]
    # What changes nothing is not counted, and a book once.
    unchanged = [{"op": "update", "id": books[0].pk, "book": {"genre": "Saga"}}]
    for items in (
        additions,
        [*edits, *again],
        deletions,
        [additions[0] | {"book": build_book()}, *unchanged, *unchanged],
    ):
        assert api.post("/api/v2/books/bulk", json={"operations": items}, headers=headers).is_success
    page, words = librarian.get(RECENT_CHANGES), ["1 book added", "1 book deleted", "3 books changed", "4 books added"]
    assert [change.operation.text for change in page.context["changes"] if change.operation] == words
    assert "4 books added Added now · ada · API key Test New 0, New 1, New 2, …" in read_words(page)
    feed = librarian.get("/admin/").context["feed"]
    assert [(item["subject"].text, item["who"].text) for item in feed[:4]] == [(text, "Test") for text in words]
    assert "3 books changed" in read_words(follow_link(librarian, page, "3 books changed"))


def test_a_request_that_did_several_things_counts_each(librarian: Client, api: httpx.Client) -> None:
    book = create_book()
    items = [{"op": "create", "book": build_book()}, {"op": "delete", "id": book.pk}]
    assert api.post("/api/v2/books/bulk", json={"operations": items}).is_success
    page = follow_link(librarian, librarian.get(RECENT_CHANGES), "2 books changed")
    assert "1 book added, 1 book deleted" in read_words(page)
    # The release before stored no numbers.
    Operation.objects.update(changed=None, result=None)
    page = follow_link(librarian, librarian.get(RECENT_CHANGES), "Changes by a program")
    assert page.status_code == 200
