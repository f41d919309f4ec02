"""The form of a book that is deleted while somebody fills it in."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from books.book_fields import FIELDS
from books.models import Book, Change
from books.writing.merging import merge_books
from tests.support.admin_pages import read_inputs, read_text, read_words
from tests.support.books_admin import (
    ADD,
    build_form,
    create_book,
    delete_book,
    find_anybody,
    history_address,
    page_address,
)


@pytest.fixture
def lost(librarian: Client) -> Any:
    """The response to the form of a book that somebody else has deleted."""
    book = create_book(title="Emma", isbn="978-0-14-143951-8")
    form = build_form(book, title="<Emma>", year=1816)
    delete_book(book)
    return librarian.post(page_address(book), {**form, "_save": "Save"})


def get_pk(response: Any) -> int:
    return int(response.wsgi_request.path.split("/")[4])


def save_restored(client: Client, lost: Any) -> Any:
    return client.post(lost.wsgi_request.path, {**read_inputs(read_text(lost)), "_restore": "1"})


def test_what_was_typed_is_shown_with_the_ways_back(lost: Any) -> None:
    words = read_words(lost)
    assert lost.status_code == 409
    assert "Nothing is saved: somebody deleted the book" in words
    for text in ("Title &lt;Emma&gt;", "Year 1816", "ISBN 978-0-14-143951-8", "Availability available"):
        assert text in words
    assert history_address(Book(pk=get_pk(lost))) in read_text(lost)
    assert not Book.objects.exists()


def test_a_form_without_the_availability_says_nothing_of_it_and_lends_nothing(librarian: Client) -> None:
    for is_available in (True, False):
        book = create_book(title="Emma", isbn="978-0-14-143951-8", available=is_available)
        form = {name: value for name, value in build_form(book, year=1816).items() if "available" not in name}
        delete_book(book)
        lost: Any = librarian.post(page_address(book), form)
        assert "Year 1816" in read_words(lost)
        assert "Availability" not in read_words(lost)
        add_form = read_text(lost).partition(f'action="{ADD}"')[2]
        assert librarian.post(ADD, read_inputs(add_form)).status_code == 302
        assert Book.objects.get().available
        delete_book(Book.objects.get())


def test_a_book_that_was_merged_away_leads_to_the_one_that_is_kept(librarian: Client) -> None:
    kept, other = create_book(title="Emma"), create_book(title="Ema")
    form = build_form(other, year=1816)
    versions = {kept.pk: 1, other.pk: 1}
    merge_books(kept.pk, versions, dict.fromkeys(FIELDS, kept.pk), find_anybody(), timezone.now())
    lost: Any = librarian.post(page_address(other), form)
    assert "Nothing is saved: somebody merged the book into Emma while" in read_words(lost)
    assert f'<a href="{page_address(kept)}">Emma</a>' in read_text(lost)
    assert "Year 1816" in read_words(lost)


def test_the_book_is_restored_and_the_form_saved(librarian: Client, lost: Any) -> None:
    assert save_restored(librarian, lost).status_code == 302
    book = Book.objects.get()
    assert (book.pk, book.title, book.year, book.isbn) == (get_pk(lost), "<Emma>", 1816, "978-0-14-143951-8")
    kinds = Change.objects.filter(book_id=book.pk).order_by("version").values_list("kind", flat=True)
    assert list(kinds)[-2:] == [Change.Kind.RESTORED, Change.Kind.CHANGED]


def test_it_is_added_as_a_new_book(librarian: Client, lost: Any) -> None:
    assert librarian.post(ADD, read_inputs(read_text(lost))).status_code == 302
    book = Book.objects.get()
    assert (book.title, book.year, book.isbn, book.pk == get_pk(lost)) == ("<Emma>", 1816, "978-0-14-143951-8", False)


def test_a_book_that_cannot_be_restored_is_told_and_nothing_is_lost(librarian: Client, lost: Any) -> None:
    create_book(isbn="978-0-14-143951-8", title="Another")
    again = save_restored(librarian, lost)
    assert again.status_code == 409
    assert "Another</a> has this ISBN" in read_text(again)
    assert "&lt;Emma&gt;" in read_text(again)


def test_restoring_needs_to_see_the_history_and_to_add_books(db: None, client: Client) -> None:
    user = User.objects.create_user("visitor", is_staff=True)
    client.force_login(user)
    for permissions in (["add_book"], ["view_history"], ["add_book", "view_history"]):
        user.user_permissions.set(Permission.objects.filter(codename__in=["change_book", *permissions]))
        book, may_restore = create_book(), len(permissions) == 2
        delete_book(book)
        page = read_text(client.post(page_address(book), build_form(book)))
        shown = [history_address(book) in page, "Restore the book" in page, "Add this" in page]
        assert shown == ["view_history" in permissions, may_restore, "add_book" in permissions]
        status = client.post(page_address(book), {**build_form(book), "_restore": "1"}).status_code
        assert (status, Book.objects.exists()) == ((302, True) if may_restore else (403, False))
