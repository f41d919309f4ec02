"""The genres of all books, counted whatever their capitals, and renamed."""

import base64
import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from books.models import Book
from tests.support.admin_pages import follow_link, read_inputs, read_text
from tests.support.books_admin import LIST, create_book
from tests.support.operations import run_operations

GENRES = f"{LIST}genres/"


def test_genres_are_counted_in_pages_whatever_their_capitals(
    head: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr("books.admin.list.genres.GENRES_OF_A_PAGE", 2)
    for genre in ("Poetry", "Novel", "NOVEL", "Économie", "a&b=c"):
        create_book(genre=genre)
    with django_assert_max_num_queries(6):
        page = head.get(GENRES)
    assert [(genre.name, genre.books, genre.spellings) for genre, _ in page.context["genres"]] == [
        ("a&b=c", 1, 1),
        ("NOVEL", 2, 2),
    ]
    page = follow_link(head, page, "Next page")
    assert [genre.name for genre, _ in page.context["genres"]] == ["Poetry", "Économie"]
    assert "Next page" not in read_text(page)


def test_books_without_a_genre_are_counted_first(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.list.genres.GENRES_OF_A_PAGE", 1)
    create_book(genre="")
    create_book(genre="Novel")
    page = head.get(GENRES)
    assert "No genre" in read_text(page)
    assert [(genre.name, genre.books) for genre, _ in page.context["genres"]] == [("", 1)]


def test_a_genre_is_renamed_across_books(head: Client) -> None:
    books = [create_book(genre=genre) for genre in ("Novel & Tale", "NOVEL & Tale", "Novel")]
    *_, address = re.findall(r'action="([^"]*bulk_edit/[^"]*)"', read_text(head.get(GENRES)))
    question = head.post(address, {"change": "set", "genre": "Tale"})
    head.post(address, read_inputs(read_text(question)))
    run_operations()
    assert [Book.objects.get(pk=book.pk).genre for book in books] == ["Tale", "Tale", "Novel"]


def test_who_edits_no_list_sees_genres_without_rename(librarian: Client) -> None:
    create_book(genre="Novel")
    page = read_text(librarian.get(GENRES))
    assert "Novel" in page
    assert "bulk_edit" not in page


@pytest.mark.parametrize("text", ['[false,"\\u0000"]', '[false,"\\ud800"]', '[true,"a"]', "x" * 5_000, "\0"])
def test_any_text_can_be_a_position(head: Client, text: str) -> None:
    cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    for position in (cursor, text):
        assert head.get(GENRES, {"cursor": position}).status_code == 200
