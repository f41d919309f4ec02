"""Forms of books that someone else changed after the page was opened."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from books.history.actors import get_or_create_actor
from books.models import Actor, Book, Change
from tests.support.admin_pages import read_inputs, read_text
from tests.support.books_admin import add_actor, build_form, change_book, create_book, page_address


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
