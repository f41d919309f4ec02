"""Forms of books that someone else deleted or changed after the page was opened."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from books.book.fields import FIELDS
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, Change
from books.writing.merging import merge_books
from tests.support.admin_pages import read_inputs, read_text, read_words
from tests.support.books_admin import (
    ADD,
    add_actor,
    build_form,
    change_book,
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


# Changed books


def list_conflicts(response: Any) -> list[str]:
    """Returns the words that stand at the fields which were changed elsewhere, too."""
    form = response.context["adminform"].form
    return [re.sub("<time.*?</time>", "some time ago", text) for name in form.conflicts for text in form.errors[name]]


def test_a_value_of_someone_else_is_replaced_only_by_the_second_save(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma")
    change_book(book, add_actor(Actor.Channel.V2, app_name="Shelf & Co"), title="<EMMA>")
    change_book(book, genre="Romance")
    question = librarian.post(page_address(book), form)
    assert Book.objects.get(pk=book.pk).title == "<EMMA>"
    assert list_conflicts(question) == [
        "It says “&lt;EMMA&gt;” by now (Shelf &amp; Co, some time ago). You wrote “Emma”."
    ]
    html = read_text(question)
    assert ["Nothing is saved yet" in html, "Please correct" in html] == [True, False]
    librarian.post(page_address(book), read_inputs(read_text(question)))
    assert Book.objects.get(pk=book.pk).title == "Emma"


def test_a_second_change_of_someone_else_is_asked_about_too(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma")
    change_book(book, title="EMMA")
    question = librarian.post(page_address(book), form)
    assert "<h1>EMMA</h1>" in read_text(question)
    change_book(book, title="E.")
    assert list_conflicts(librarian.post(page_address(book), read_inputs(read_text(question)))) == [
        "It says “E.” by now (command line, some time ago). You wrote “Emma”."
    ]


@pytest.mark.unrecorded
def test_the_question_names_only_whom_one_may_see(librarian: Client, astrid: User) -> None:
    book, other = create_book(title="Ema"), User.objects.create_user("pippi")
    form = build_form(book, title="Emma")
    change_book(book, get_or_create_actor(Actor.Channel.ADMIN, user_id=astrid.pk), title="E.")
    assert "(you, elsewhere, some time ago)" in list_conflicts(librarian.post(page_address(book), form))[0]
    change_book(book, get_or_create_actor(Actor.Channel.ADMIN, user_id=other.pk), title="EMMA")
    assert "(pippi, some time ago)" in list_conflicts(librarian.post(page_address(book), form))[0]
    astrid.groups.clear()
    astrid.user_permissions.set(Permission.objects.filter(codename="change_book"))
    assert "“EMMA” by now (some time ago)." in list_conflicts(librarian.post(page_address(book), form))[0]
    # The history is kept for so many days only.
    Change.objects.all().delete()
    assert "“EMMA” by now (some time ago)." in list_conflicts(librarian.post(page_address(book), form))[0]


def test_only_values_that_differ_are_asked_about(librarian: Client) -> None:
    for edits, saved in (
        ({"available": "", "year": "1816"}, {"available": False}),
        ({"genre": "Romance"}, {"genre": "Romance"}),
        ({"title": "Emma"}, {"title": " Pride \nand Prejudice"}),
    ):
        book = create_book()
        form = build_form(book, **edits)
        change_book(book, **saved)
        assert librarian.post(page_address(book), form).status_code == 302, edits


def test_a_value_of_someone_else_can_be_kept(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma", genre="Romance")
    change_book(book, title="EMMA")
    question = librarian.post(page_address(book), form)
    librarian.post(page_address(book), {**read_inputs(read_text(question)), "title": "EMMA"})
    changed_book = Book.objects.get(pk=book.pk)
    assert (changed_book.title, changed_book.genre, changed_book.version) == ("EMMA", "Romance", 3)


def test_other_errors_are_shown_beside_the_question(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma", year="")
    change_book(book, title="EMMA")
    response = librarian.post(page_address(book), form)
    assert list(response.context["adminform"].form.errors) == ["year", "title"]
    assert "Please correct the errors below" in read_text(response)
