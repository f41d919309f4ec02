"""The form of a new book shows what a catalogue has about its ISBN, and says why nothing was found."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client
from pytest_django import Settings

from books.admin.book import catalogue as pages
from books.files.catalogues.lookup import CatalogueResult
from books.models import Book
from library_site.http.transfer.streams import StreamLimit
from library_site.rate_limit.windows import LocalCounter
from tests.support.admin_pages import read_text, read_words
from tests.support.books_admin import ADD, LIST, create_book, page_address
from tests.support.receivers import respond_with
from tests.support.sru_servers import ISBN, Catalogue, build_record, respond_with_records, start_catalogue

pytestmark = pytest.mark.usefixtures("catalogues_of_this_machine")

ASK = f"{LIST}catalogue/"
BUTTON = "Fill from the catalogue"


@pytest.fixture
def catalogue(settings: Settings) -> Iterator[Catalogue]:
    """A catalogue that has Emma, and nothing else."""
    with start_catalogue(respond_with_records(build_record())) as catalogue:
        settings.SRU_SERVERS = [catalogue.template]
        yield catalogue


@pytest.fixture(autouse=True)
def counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has asked anything yet."""
    new_counter = LocalCounter(pages.QUESTION_PERIOD)
    monkeypatch.setattr(pages, "get_counter", lambda *_: new_counter)


def read_message(response: Any) -> str:
    [message] = re.findall(r'data-message="([^"]*)"', read_text(response))
    return str(message)


def read_values(response: Any) -> dict[str, str]:
    return dict(re.findall(r'data-field="(\w+)" value="([^"]*)"', read_text(response)))


def test_what_was_found_is_shown_and_nothing_is_written(librarian: Client, catalogue: Catalogue) -> None:
    response = librarian.post(ASK, {"isbn": ISBN})
    assert (response.status_code, read_message(response)) == (200, "Found at 127.0.0.1:")
    assert read_values(response) == {"title": "Emma", "author": "Austen, Jane", "year": "1815", "genre": "Novel"}
    assert Book.objects.count() == 0


def test_a_name_is_written_as_the_newest_books_write_theirs(librarian: Client, catalogue: Catalogue) -> None:
    for author, expected in (("Selma Lagerlöf", "Jane Austen"), ("Lagerlöf, Selma", "Austen, Jane")):
        create_book(author=author)
        assert read_values(librarian.post(ASK, {"isbn": ISBN}))["author"] == expected
    for author in ("Madonna", "King, Martin Luther, III"):
        create_book(author="Selma Lagerlöf")
        catalogue.answer = respond_with_records(build_record(m100a=author))
        cache.clear()
        assert read_values(librarian.post(ASK, {"isbn": ISBN}))["author"] == author


def test_what_the_catalogue_does_not_say_is_named(librarian: Client, catalogue: Catalogue) -> None:
    catalogue.answer = respond_with_records(build_record(m655a="", m264c=""))
    assert "Not in the catalogue: Year, Genre." in read_words(librarian.post(ASK, {"isbn": ISBN}))


def test_texts_of_the_catalogue_are_no_html(librarian: Client, catalogue: Catalogue) -> None:
    catalogue.answer = respond_with_records(build_record(m245a='<script>"'))
    assert "<script>" not in read_text(librarian.post(ASK, {"isbn": ISBN}))


def test_an_isbn_is_read_as_it_is_scanned_and_asked_for_once(librarian: Client, catalogue: Catalogue) -> None:
    for text in ("0141439580", "978-0-14-143958-7", "978014143958751299"):
        assert librarian.post(ASK, {"isbn": text}).status_code == 200
    assert len(catalogue.paths) == 1


def test_why_nothing_was_found_is_said(
    librarian: Client, catalogue: Catalogue, caplog: pytest.LogCaptureFixture
) -> None:
    catalogue.answer = respond_with_records()
    said = librarian.post(ASK, {"isbn": ISBN})
    message = "The catalogue does not have this ISBN. Fill in the form by hand."
    assert (said.status_code, read_message(said), read_words(said)) == (404, message, "")
    cache.clear()
    catalogue.answer = respond_with(500)
    said = librarian.post(ASK, {"isbn": ISBN})
    message = "The catalogue did not say whether it has this ISBN. Fill in the form by hand."
    words = "127.0.0.1: It answered with the status 500."
    assert (said.status_code, read_message(said), read_words(said)) == (502, message, words)
    # That another server fails is no error of ours.
    assert [record.levelname for record in caplog.records if record.name.startswith("books.")] == ["WARNING"]


def test_what_is_no_isbn_is_not_asked_for(librarian: Client, catalogue: Catalogue) -> None:
    for isbn, words in (("", "This is no valid ISBN."), ("9780141439588", "In this ISBN a digit is wrong")):
        response = librarian.post(ASK, {"isbn": isbn})
        assert (response.status_code, words in read_message(response)) == (422, True)
    assert catalogue.paths == []


def test_a_person_may_ask_so_often(librarian: Client, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_QUESTIONS", 1)
    catalogue.answer = respond_with(500)
    responses = [librarian.post(ASK, {"isbn": ISBN}) for _ in range(2)]
    assert [(response.status_code, response.get("Retry-After")) for response in responses] == [(502, None), (429, "60")]
    assert len(catalogue.paths) == 1


def test_questions_have_a_part_of_the_threads(
    librarian: Client, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = StreamLimit(1, 1)
    monkeypatch.setattr(pages, "get_stream_limit", lambda: limit)
    meanwhile = []

    def ask_meanwhile(*_: Any) -> CatalogueResult:
        response = librarian.post(ASK, {"isbn": ISBN})
        meanwhile.append((response.status_code, response["Retry-After"]))
        return CatalogueResult()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "look_up", ask_meanwhile)
        assert librarian.post(ASK, {"isbn": ISBN}).status_code == 404
    assert meanwhile == [(503, "4")]
    # The place is free again.
    assert librarian.post(ASK, {"isbn": ISBN}).status_code == 200


def test_only_who_may_add_books_asks_and_only_by_a_form_of_ours(
    client: Client, catalogue: Catalogue, astrid: User
) -> None:
    reader = User.objects.create_user("reader", is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename__in=["view_book", "change_book"]))
    assert client.post(ASK, {"isbn": ISBN}).status_code == 302
    client.force_login(reader)
    assert client.post(ASK, {"isbn": ISBN}).status_code == 403
    client.force_login(astrid)
    assert client.get(ASK, {"isbn": ISBN}).status_code == 405
    client.handler.enforce_csrf_checks = True
    try:
        assert client.post(ASK, {"isbn": ISBN}).status_code == 403
    finally:
        client.handler.enforce_csrf_checks = False
    assert catalogue.paths == []


def test_the_button_is_in_the_form_of_a_new_book_alone(librarian: Client, catalogue: Catalogue) -> None:
    book = create_book()
    assert BUTTON in read_text(librarian.get(ADD))
    assert BUTTON not in read_text(librarian.get(page_address(book)))


def test_without_catalogues_there_is_no_button_and_no_response(librarian: Client) -> None:
    assert BUTTON not in read_text(librarian.get(ADD))
    assert librarian.post(ASK, {"isbn": ISBN}).status_code == 404
