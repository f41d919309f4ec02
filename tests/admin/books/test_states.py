"""Earlier states of a book: compared with each other, and restored."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from books.models import Book, Change
from books.writing import changes
from tests.support.admin_pages import follow_link, read_inputs, read_text, read_words
from tests.support.books_admin import change_book, create_book, delete_book, find_anybody, history_address, page_address


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
