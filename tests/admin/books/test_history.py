"""The history of a book as a librarian reads it, and its earlier states: compared with each other, and restored."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from pytest_django import Settings

from books.admin.book import history
from books.history.actors import get_or_create_actor, record_operation
from books.models import Actor, Book, Change, Operation
from books.writing import changes
from tests.support.admin_pages import ODD_QUERIES, follow_link, read_inputs, read_text, read_words, submit_action
from tests.support.books_admin import (
    DELETED_BOOKS,
    LIST,
    RECENT_CHANGES,
    add_actor,
    build_form,
    change_book,
    create_book,
    delete_book,
    find_anybody,
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


# Earlier states


def state_address(book: Book, **query: int | str) -> str:
    return f"{history_address(book)}state/?" + "&".join(f"{name}={value}" for name, value in query.items())


def list_differences(response: Any) -> list[tuple[str, str, str]]:
    return [(line.label, line.left, line.right) for line in response.context["lines"] if line.differs]


def list_columns(response: Any) -> list[tuple[int, bool]]:
    """Returns the versions of the states that the page shows, and whether they can be restored."""
    return [(column["version"], column["is_restorable"]) for column in response.context["columns"]]


@pytest.fixture
def novel(db: None) -> Book:
    """A book with four versions."""
    book = create_book(title="Ema", year=1816)
    for values in ({"title": "Emma"}, {"year": 1815, "genre": "Satire"}, {"available": False}):
        change_book(book, **values)
    return book


def test_any_two_states_are_compared(librarian: Client, novel: Book) -> None:
    for version, other in ((1, 3), (3, 1)):
        response: Any = librarian.get(state_address(novel, version=version, other=other))
        assert list_columns(response) == [(1, True), (3, True)]
        differences = [("Title", "Ema", "Emma"), ("Year", "1816", "1815"), ("Genre", "Novel", "Satire")]
        assert list_differences(response) == differences
    words = read_words(response)
    assert ["Versions 1 and 3 of Emma" in words, "Title differs Ema Emma Author Jane" in words] == [True, True]


def test_the_last_two_states_are_compared_first(librarian: Client, novel: Book) -> None:
    for versions in ((3, 4), (4, 6)):
        comparison = read_inputs(read_text(librarian.get(history_address(novel))))
        assert (comparison["version"], comparison["other"]) == tuple(map(str, versions))
        assert list_columns(librarian.get(state_address(novel, **comparison)))[0][0] == versions[0]
        delete_book(novel)
        changes.restore_book(novel.pk, find_anybody(), timezone.now())


def test_a_state_is_shown_beside_the_present_one(librarian: Client, novel: Book) -> None:
    page = librarian.get(history_address(novel))
    response: Any = follow_link(librarian, page, "Version 3")
    assert list_columns(response) == [(3, True), (4, False)]
    assert list_differences(response) == [("Availability", "available", "lent")]
    assert "Version 4, now" in read_words(response)
    alone: Any = librarian.get(state_address(novel, version=4))
    assert (list_columns(alone), list_differences(alone)) == ([(4, False)], [])


def test_an_unknown_version_leads_back_to_the_history(librarian: Client, novel: Book) -> None:
    for query in ("", *(f"version={text}" for text in ("5", "x", "%00", "9" * 5000, "1&other=9"))):
        response: Any = librarian.get(f"{history_address(novel)}state/?{query}", follow=True)
        assert response.redirect_chain == [(history_address(novel), 302)], query
        assert "A state of the book with this version is not known." in read_words(response), query


@pytest.mark.unrecorded
def test_a_state_before_a_gap_is_not_known(librarian: Client, novel: Book) -> None:
    Change.objects.filter(book_id=novel.pk, version=3).delete()
    assert librarian.get(state_address(novel, version=2)).headers["Location"] == history_address(novel)
    assert librarian.get(state_address(novel, version=3)).status_code == 200


def test_the_states_of_a_deleted_book_are_shown_but_not_restored(librarian: Client, novel: Book) -> None:
    delete_book(novel)
    response: Any = librarian.get(state_address(novel, version=1))
    assert list_columns(response) == [(1, False), (4, False)]
    assert "now" not in read_words(response)


def test_a_restored_state_is_saved_as_a_change_of_what_differs(librarian: Client, novel: Book) -> None:
    comparison = librarian.get(state_address(novel, version=1))
    form: Any = follow_link(librarian, comparison, "Restore this state")
    # The page is still that of the book as it is.
    assert form.context["original"].title == "Emma"
    lines = "Title: Emma → Ema Year: 1815 → 1816 Genre: Satire → Novel Availability: lent → available"
    assert lines in read_words(form)
    librarian.post(page_address(novel), read_inputs(read_text(form)))
    change = Change.objects.get(book_id=novel.pk, version=5)
    assert change.after == {"title": "Ema", "year": 1816, "genre": "Novel", "available": True}
    assert change.actor.user_name == "astrid"


def test_a_restored_state_asks_before_it_replaces_what_someone_else_saved(librarian: Client, novel: Book) -> None:
    form = read_inputs(read_text(librarian.get(f"{page_address(novel)}?state=1")))
    change_book(novel, title="EMMA")
    words = read_words(librarian.post(page_address(novel), form))
    assert ["It says “EMMA” by now" in words, "You wrote “Ema”." in words] == [True, True]
    assert Book.objects.get(pk=novel.pk).version == 5


def test_restoring_a_state_takes_both_permissions(client: Client, astrid: User, novel: Book) -> None:
    client.force_login(astrid)
    for permission in ("view_book", "change_book"):
        astrid.groups.clear()
        astrid.user_permissions.set(Permission.objects.filter(codename=permission))
        response: Any = client.get(f"{page_address(novel)}?state=1")
        assert "The form has an earlier state" not in read_text(response)
        astrid.user_permissions.add(Permission.objects.get(codename="view_history"))
        columns = list_columns(client.get(state_address(novel, version=1)))
        assert columns[0] == (1, permission == "change_book")
