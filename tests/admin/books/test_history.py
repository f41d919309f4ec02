"""The history of a book, as a librarian reads it."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from pytest_django import Settings

from books.admin.book import history
from books.history.actors import get_or_create_actor, record_operation
from books.models import Actor, Change, Operation
from tests.support.admin_pages import ODD_QUERIES, follow_link, read_text, read_words, submit_action
from tests.support.books_admin import (
    DELETED_BOOKS,
    LIST,
    RECENT_CHANGES,
    add_actor,
    build_form,
    change_book,
    create_book,
    delete_book,
    history_address,
    list_entries,
    list_versions,
    page_address,
)


def test_each_change_has_its_values_side_by_side(librarian: Client) -> None:
    book = create_book(title="Ema")
    librarian.post(page_address(book), build_form(book, title="Emma <3", available=""))
    response: Any = librarian.get(history_address(book))
    (change, _), (creation, _) = response.context["changes"]
    lines = [tuple(line) for line in change.lines]
    assert lines == [("Title", "Ema", "Emma <3"), ("Availability", "available", "lent")]
    assert creation.lines == []
    assert "Title: Ema → <strong>Emma &lt;3</strong>" in read_text(response)
    assert re.search(r"Version 2 Changed (now|a second ago|\d+ seconds ago) · astrid Title", read_words(response))
    # Django's own log is written, too.
    assert [entry.get_change_message() for entry in LogEntry.objects.all()] == ["Changed Title and Available."]


def test_a_change_names_who_made_it_and_through_what(librarian: Client) -> None:
    actors = {
        " · ada · app Bindery · API, version 2": (
            Actor.Channel.V2,
            {"user_name": "ada", "app_name": "Bindery"},
        ),
        " · Till · API, version 1": (Actor.Channel.V1, {"api_key_name": "Till"}),
        " · North · mirroring": (Actor.Channel.MIRROR, {"source_name": "North"}),
        " · API · bulk request": (Actor.Channel.BULK, {}),
        " · command line": (Actor.Channel.COMMAND, {}),
    }
    for words, (channel, names) in actors.items():
        book = create_book(actor=add_actor(channel, **names))
        assert words in read_words(librarian.get(history_address(book)))
    # An operation that says the same as its channel is named once.
    for channel, kind, words in (
        (Actor.Channel.BULK, "bulk", "changes by a program"),
        (Actor.Channel.IMPORT, "import", "import"),
    ):
        book = create_book(actor=record_operation(kind, get_or_create_actor(channel), timezone.now()))
        assert read_words(librarian.get(history_address(book))).count(f" · {words}") == 1
    Operation.objects.all().delete()
    assert " · import" in read_words(librarian.get(history_address(book)))


def test_a_list_action_links_its_other_changes(librarian: Client) -> None:
    book, other_book = create_book(title="Emma"), create_book(title="Persuasion")
    submit_action(librarian, LIST, "mark_lent", book, other_book)
    operation_page = follow_link(librarian, librarian.get(history_address(book)), "2 books marked as lent")
    changes = follow_link(librarian, operation_page, "All changes")
    assert list_entries(changes) == [("Persuasion", 2), ("Emma", 2)]


def test_the_names_of_a_change_link_what_else_they_did(librarian: Client) -> None:
    key = add_actor(Actor.Channel.V2, user_name="ada", app_name="Bindery & Co", api_key_name="Till")
    book = create_book(title="Emma")
    change_book(book, actor=key, year=1815)
    create_book(title="Persuasion", actor=key)
    page = librarian.get(history_address(book))
    for words in ("ada", "Bindery &amp; Co", "Till", "API, version 2"):
        assert list_entries(follow_link(librarian, page, words)) == [("Persuasion", 1), ("Emma", 2)]


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PAGE_SIZE", 2)


@pytest.mark.usefixtures("short_pages")
def test_pages_follow_each_other_in_both_directions(librarian: Client) -> None:
    book = create_book()
    for year in range(4):
        change_book(book, year=year)
    pages = [librarian.get(history_address(book))]
    for words in ("Older", "Older", "Newer", "Newer", "Older", "Newest"):
        pages.append(follow_link(librarian, pages[-1], words))
    assert [list_versions(page) for page in pages] == [[5, 4], [3, 2], [1], [3, 2], [5, 4], [3, 2], [5, 4]]
    assert [bool(page.context["pager"].page.previous_key) for page in pages[:3]] == [False, True, True]
    assert [bool(page.context["pager"].page.next_key) for page in pages[:3]] == [True, True, False]


@pytest.mark.unrecorded
def test_a_history_says_how_far_back_it_goes(librarian: Client) -> None:
    book = create_book()
    change_book(book, year=1)
    assert "The history goes back to the creation of the book." in read_words(librarian.get(history_address(book)))
    Change.objects.filter(book_id=book.pk, version=1).delete()
    words = read_words(librarian.get(history_address(book)))
    added_at = f"{date_format(book.created_at, 'j M Y')}, {book.created_at:%H:%M}"
    assert f"goes back to version 2, but the book is older: it was added on {added_at}" in words
    Change.objects.all().delete()
    assert "The history has no changes of this book." in read_words(librarian.get(history_address(book)))


@pytest.mark.unrecorded
@pytest.mark.usefixtures("short_pages")
def test_a_history_shows_where_changes_are_missing(librarian: Client, settings: Settings) -> None:
    settings.HISTORY_KEPT_DAYS = 30
    book = create_book()
    for year in range(6):
        change_book(book, year=year)
    Change.objects.filter(book_id=book.pk, version__in=[2, 3, 5, 7]).delete()
    first_page = librarian.get(history_address(book))
    second_page = follow_link(librarian, first_page, "Older")
    assert re.findall(r"Versions? [\d to]+ (?:is|are) not in the history|Version \d", read_words(first_page)) == [
        "Version 7 is not in the history",
        "Version 6",
        "Version 5 is not in the history",
        "Version 4",
    ]
    assert "Versions 2 to 3 are not in the history. Version 1" in read_words(second_page)
    assert "Changes are kept for 30 days" in read_words(second_page)


def test_a_deleted_book_still_has_its_history(librarian: Client) -> None:
    book = create_book(title="Emma", author="Jane Austen", year=1815)
    delete_book(book)
    response: Any = librarian.get(history_address(book))
    (deletion, _), _ = response.context["changes"]
    assert list_versions(response) == [2, 1]
    assert ("Title", "Emma", None) in deletion.lines
    assert "History of Emma (Jane Austen, 1815)" in read_words(response)
    assert "This book is deleted." in read_words(response)


def test_no_query_fails(librarian: Client) -> None:
    pages = [history_address(create_book()), RECENT_CHANGES, DELETED_BOOKS]
    addresses = [f"{RECENT_CHANGES}?{query}" for query in ODD_QUERIES]
    addresses += [f"{page}?cursor={text}" for page in pages for text in ("x", "WyIxIl0")]
    addresses += [f"{pages[0]}?cursor=%00", f"{pages[0]}?cursor={'W' * 5000}", f"{pages[0]}state/?q=%00"]
    for address in addresses:
        assert librarian.get(address, follow=True).status_code == 200, address


def test_who_may_not_view_the_history_sees_none(client: Client, astrid: User) -> None:
    book = create_book()
    astrid.groups.clear()
    client.force_login(astrid)
    pages = [history_address(book), f"{history_address(book)}state/?version=1", RECENT_CHANGES, DELETED_BOOKS]
    assert [client.get(page).status_code for page in pages] == [403] * 4
    assert client.post(f"{LIST}{book.pk}/restore/").status_code == 403
    client.logout()
    assert {client.get(page).headers["Location"].partition("?")[0] for page in pages} == {"/admin/login/"}


@pytest.mark.unrecorded
def test_a_history_begins_with_the_first_state_that_is_known(librarian: Client) -> None:
    book = create_book(year=1816)
    change_book(book, year=1815)
    assert librarian.get(history_address(book)).context["first_state"] is None
    Change.objects.filter(kind=Change.Kind.CREATED).delete()
    first = librarian.get(history_address(book)).context["first_state"]
    assert (first["version"], {line.label: line.left for line in first["lines"]}["Year"]) == (1, "1816")
    page = librarian.get(first["address"])
    assert [column["version"] for column in page.context["columns"]] == [1, 2]
    Change.objects.all().delete()
    assert librarian.get(history_address(book)).context["first_state"]["version"] == 2


def test_a_title_from_right_to_left_turns_no_sentence(librarian: Client) -> None:
    for title, first, last in (("Émile", "", ""), ("گلستان", "\u2068", "\u2069"), ("A \u202eb", "\u2068", "\u2069")):
        page = read_text(librarian.get(history_address(create_book(title=title))))
        assert f"<h1>History of {first}{title} (Jane Austen, 1813){last}</h1>" in page
