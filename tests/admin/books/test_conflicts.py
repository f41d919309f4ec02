"""Forms of books that someone else changed after the page was opened."""

from typing import Any

from django.test import Client

from books.models import Book
from tests.support.admin_pages import read_inputs, read_text
from tests.support.books_admin import build_form, change_book, create_book, page_address


def list_conflicts(response: Any) -> list[tuple[Any, ...]]:
    return [tuple(conflict.values()) for conflict in response.context["adminform"].form.conflicts]


def test_a_value_of_someone_else_is_replaced_only_by_the_second_save(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma")
    change_book(book, title="<EMMA>")
    question = librarian.post(page_address(book), form)
    assert Book.objects.get(pk=book.pk).title == "<EMMA>"
    assert list_conflicts(question) == [("Title", "Ema", "<EMMA>", "Emma")]
    html = read_text(question)
    assert [f">{value}</td>" in html for value in ("Ema", "&lt;EMMA&gt;", "Emma")] == [True] * 3
    assert ["Nothing is saved yet" in html, "Please correct" in html] == [True, False]
    librarian.post(page_address(book), read_inputs(read_text(question)))
    assert Book.objects.get(pk=book.pk).title == "Emma"


def test_a_second_change_of_someone_else_is_asked_about_too(librarian: Client) -> None:
    book = create_book(title="Ema")
    form = build_form(book, title="Emma")
    change_book(book, title="EMMA")
    question = librarian.post(page_address(book), form)
    change_book(book, title="E.")
    assert list_conflicts(librarian.post(page_address(book), read_inputs(read_text(question)))) == [
        ("Title", "EMMA", "E.", "Emma")
    ]


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
