"""The form of a book: how it writes an ISBN, what it warns of, what it suggests, and where its focus is."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from books.admin.book import suggestions
from books.models import Book
from tests.support.admin_pages import read_inputs, read_text
from tests.support.books import build_book, build_isbn
from tests.support.books_admin import ADD, LIST, build_form, change_book, create_book, delete_book, page_address

SUGGESTIONS = f"{LIST}suggestions/"
WARNINGS = f"{LIST}warnings/"
ISBN = "978-0-14-143951-8"


def build_new(**fields: Any) -> dict[str, Any]:
    """A form for which there is nothing to warn of, but for these fields."""
    return {**build_book(title="Emma", author="Somebody Else", isbn=ISBN, year=1815), "available": "on", **fields}


def read_errors(response: Any) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = response.context["adminform"].form.errors
    return errors


def read_focus(response: Any) -> list[str]:
    inputs = re.findall(r"<input[^>]*\bautofocus\b[^>]*>", read_text(response))
    return [re.findall(r'name="([^"]*)"', element)[0] for element in inputs]


def test_a_valid_isbn_gets_its_hyphens(librarian: Client) -> None:
    short = "0-14-143951-3"
    for typed in ("9780141439518", "978014143951851299", "çè_à&'&'\"ç(&_", "0141439513"):
        assert librarian.post(ADD, build_new(isbn=typed)).status_code == 302
        book = Book.objects.get()
        assert book.isbn == (short if typed.startswith("0") else ISBN), typed
        delete_book(book)


def test_the_isbn_of_an_old_book_is_written_as_the_librarian_writes_it(librarian: Client) -> None:
    book = create_book(isbn="9780141439518")
    for edits, written in (({"genre": "Romance"}, "9780141439518"), ({"isbn": "0141439513"}, "0141439513")):
        librarian.post(page_address(book), build_form(book, **edits))
        assert Book.objects.get().isbn == written


def test_an_earlier_state_is_restored_with_one_save_and_warned_of(librarian: Client) -> None:
    book = create_book(isbn="978-0-14-143951-8", year=1399)
    change_book(book, isbn="9780141439518", year=1815)
    page = read_text(librarian.get(page_address(book), {"state": 1}))
    assert "This year is improbable" in page
    librarian.post(page_address(book), read_inputs(page))
    restored_book = Book.objects.get()
    assert (restored_book.isbn, restored_book.year) == ("978-0-14-143951-8", 1399)


def test_what_is_probably_wrong_is_saved_by_the_second_save(librarian: Client) -> None:
    create_book(title="Persuasion", isbn="978-0-14-143958-7")
    questions: list[tuple[dict[str, Any], str, str]] = [
        ({"isbn": "9780141439519"}, "isbn", "In this ISBN a digit is wrong"),
        ({"title": "Persuasion : a novel", "author": "Austen, Jane"}, "title", "has the same title and author"),
        ({"year": 1399}, "year", "This year is improbable"),
    ]
    for number, (fields, field, words) in enumerate(questions, 1):
        form = build_new(**{"title": f"Emma {number}", "isbn": build_isbn(number), **fields})
        question = librarian.post(ADD, form)
        [(asked, [message])] = read_errors(question).items()
        assert (asked, words in message, "Please correct" in read_text(question)) == (field, True, False)
        assert Book.objects.count() == number
        shown = read_inputs(read_text(question))["shown_warnings"]
        assert librarian.post(ADD, {**form, "shown_warnings": shown}).status_code == 302


def test_a_scanned_isbn_that_is_there_is_added_only_after_an_explicit_yes(librarian: Client) -> None:
    """However often one saves, and although the page warned while the form was filled in."""
    create_book(title="Emma", isbn="0-14-143951-3")
    scanned = build_new(isbn="9780141439518")
    seen = read_inputs(read_text(librarian.get(WARNINGS, scanned)))
    question = librarian.post(ADD, {**scanned, **seen})
    [(asked, [message])] = read_errors(question).items()
    assert (asked, "has the same ISBN" in message) == ("isbn", True)
    again = librarian.post(ADD, {**read_inputs(read_text(question)), "isbn": "9780141439518"})
    assert (list(read_errors(again)), Book.objects.count()) == (["isbn"], 1)
    [yes] = re.findall(r'<input type="checkbox" name="accepted_warning" value="(\w+)">', read_text(again))
    assert list(read_errors(librarian.post(ADD, {**scanned, "shown_warnings": yes}))) == ["isbn"]
    assert librarian.post(ADD, {**scanned, "accepted_warning": yes}).status_code == 302
    assert Book.objects.count() == 2


def test_a_yes_is_about_one_book_and_kept_while_something_else_is_asked(librarian: Client) -> None:
    create_book(isbn="9780141439518")
    create_book(isbn="9780141439587", author="Somebody Else")
    page = read_text(librarian.post(ADD, build_new()))
    [yes] = re.findall(r'name="accepted_warning" value="(\w+)"', page)
    assert list(read_errors(librarian.post(ADD, build_new(isbn="9780141439587", accepted_warning=yes)))) == ["isbn"]
    other_question = librarian.post(ADD, build_new(year=1399, accepted_warning=yes))
    assert list(read_errors(other_question)) == ["year"]
    kept = {name: value for name, value in read_inputs(read_text(other_question)).items() if "warning" in name}
    assert librarian.post(ADD, build_new(year=1399, **kept)).status_code == 302


def test_a_warning_begins_with_a_link_to_the_other_book(librarian: Client) -> None:
    book = create_book(title="<b>", isbn="9780141439518")
    page = read_text(librarian.post(ADD, build_new()))
    expected = f'<a href="{page_address(book)}">Open that book</a>: &lt;b&gt; (Jane Austen, 1813) has the same ISBN'
    assert expected in page


def test_another_problem_is_asked_about_again(librarian: Client) -> None:
    shown = read_inputs(read_text(librarian.post(ADD, build_new(year=1399))))["shown_warnings"]
    response = librarian.post(ADD, build_new(year=1398) | {"shown_warnings": shown})
    assert list(read_errors(response)) == ["year"]


def test_errors_are_corrected_before_warnings_are_asked_about(librarian: Client) -> None:
    response = librarian.post(ADD, build_new(genre="", year=1399))
    assert list(read_errors(response)) == ["genre"]
    assert "This year is improbable" in read_text(response)


def test_the_focus_is_on_the_first_error_or_the_first_empty_field(librarian: Client) -> None:
    for changed, focused in (({}, "isbn"), ({"isbn": ISBN}, "title"), ({"isbn": ISBN, "title": "Emma"}, "author")):
        assert read_focus(librarian.get(ADD, changed)) == [focused]
    assert read_focus(librarian.post(ADD, build_new(author="", genre=""))) == ["author"]


def test_warnings_come_while_the_form_is_filled_in(librarian: Client) -> None:
    create_book(isbn="9780141439518")
    response = librarian.get(WARNINGS, {"isbn": "0141439513", "year": "12"})
    page = read_text(response)
    assert 'data-isbn="0-14-143951-3"' in page
    assert "has the same ISBN" in page
    assert "improbable" in page
    assert len(read_inputs(page)["shown_warnings"].split()) == 1
    for query in ({}, {"book": "x"}, {"book": "9" * 30}, {"isbn": "\0", "year": "9" * 99}):
        assert librarian.get(WARNINGS, query).status_code == 200, query


def test_a_taken_isbn_is_told_while_the_form_is_filled_in(librarian: Client) -> None:
    book = create_book(isbn="taken")
    assert f'<a href="{page_address(book)}">' in read_text(librarian.get(WARNINGS, {"isbn": "taken"}))
    own = {**build_form(book), "book": book.pk}
    assert f'<a href="{page_address(book)}">' not in read_text(librarian.get(WARNINGS, own))


def test_genres_and_authors_are_suggested(librarian: Client) -> None:
    for genre in ("Novel", "novel", "Novella", "NOVELTY", "Poetry"):
        create_book(genre=genre, author="Émile Zola")
    assert librarian.get(SUGGESTIONS, {"member": "genre", "text": "nov"}).json() == ["Novel", "Novella", "NOVELTY"]
    assert librarian.get(SUGGESTIONS, {"member": "author", "text": "éM"}).json() == ["Émile Zola"]
    for query in ({}, {"member": "title", "text": "a"}, {"member": "genre"}, {"member": "genre", "text": "\0%_"}):
        assert librarian.get(SUGGESTIONS, query).json() == [], query


def test_suggestions_are_few_and_take_one_query(librarian: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "MAX_SUGGESTIONS", 2)
    for number in range(3):
        create_book(genre=f"Genre {number}")
    with CaptureQueriesContext(connection) as queries:
        assert len(librarian.get(SUGGESTIONS, {"member": "genre", "text": "g"}).json()) == 2
    assert sum("RECURSIVE" in query["sql"] for query in queries) == 1
