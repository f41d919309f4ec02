"""The genres of all books, counted whatever their capitals, and made one."""

import base64
import html
import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from books import summaries
from books.models import Book, Operation, Summary
from tests.support.admin_pages import follow_link, read_inputs, read_text, read_words
from tests.support.books_admin import LIST, create_book
from tests.support.operations import run_operations

GENRES = f"{LIST}genres/"


def test_genres_are_counted_in_pages_whatever_their_capitals(
    head: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr("books.admin.list.genres.GENRES_OF_A_PAGE", 2)
    for genre in ("Poetry", "Novel", "NOVEL", "Novel", "Économie", "a&b=c"):
        create_book(genre=genre)
    head.get(GENRES)
    with django_assert_max_num_queries(14):
        page = head.get(GENRES)
    assert [(genre.name, genre.books, genre.spellings) for genre, _ in page.context["genres"]] == [
        ("a&b=c", 1, 1),
        ("Novel", 3, 2),
    ]
    assert "Spellings" in read_words(page)
    page = follow_link(head, page, "Next page")
    assert [genre.name for genre, _ in page.context["genres"]] == ["Poetry", "Économie"]
    assert "Spellings" not in read_words(page)
    assert "Next page" not in read_text(page)


def test_a_large_library_reads_no_books_for_its_genres(
    head: Client, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    monkeypatch.setattr(summaries, "LIVE_SECONDS", -1)
    create_book(genre="Novel")
    assert "The genres were counted" not in read_words(head.get(GENRES))
    summaries.refresh_summaries(timezone.now() + timedelta(minutes=1))
    create_book(genre="Poetry")
    with django_assert_max_num_queries(6) as queries:
        page = head.get(GENRES)
    assert not any("books_book" in query["sql"] for query in queries.captured_queries)
    assert [genre.name for genre, _ in page.context["genres"]] == ["Novel"]
    assert "The genres were counted" in read_words(page)
    summaries.refresh_summaries(timezone.now() + timedelta(minutes=3))
    assert [genre.name for genre, _ in head.get(GENRES).context["genres"]] == ["Novel", "Poetry"]
    # The worker of the release before does not count them.
    Summary.objects.update(numbers={})
    assert [genre.name for genre, _ in head.get(GENRES).context["genres"]] == ["Novel", "Poetry"]


def test_more_genres_than_the_summary_has_are_counted_on_their_pages(
    head: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "LIVE_SECONDS", -1)
    monkeypatch.setattr(summaries, "MAX_COUNTED_GENRES", 4)
    monkeypatch.setattr("books.admin.list.genres.MAX_COUNTED_GENRES", 4)
    monkeypatch.setattr("books.admin.list.genres.GENRES_OF_A_PAGE", 2)
    for genre in "edcba":
        create_book(genre=genre)
    head.get(GENRES)
    summaries.refresh_summaries(timezone.now() + timedelta(minutes=1))
    pages = [head.get(GENRES)]
    for _ in range(2):
        pages.append(follow_link(head, pages[-1], "Next page"))
    assert [[genre.name for genre, _ in page.context["genres"]] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]


def test_books_without_a_genre_are_counted_first(head: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("books.admin.list.genres.GENRES_OF_A_PAGE", 3)
    for genre in ("", " ", "", "Novel"):
        create_book(genre=genre)
    page = head.get(GENRES)
    assert [(genre.name, genre.books) for genre, _ in page.context["genres"]] == [("", 3), ("Novel", 1)]
    assert follow_link(head, page, "No genre").context["cl"].result_count == 3


def rename(client: Client, names: list[str], new_name: str) -> Any:
    return client.post(GENRES, {"change": "set", "genres": names, "genre": new_name}, follow=True)


def test_several_genres_become_one_and_the_edit_is_undone(head: Client) -> None:
    genres = ["Sci-Fi", "SCI-FI", 'Science, "Fiction"', "", " ", "Fantasy"]
    books = [create_book(genre=genre) for genre in genres]
    page = rename(head, ["Sci-Fi", 'Science, "Fiction"', ""], 'Science, "Fiction"')
    assert "Edit 4 books" in read_words(page)
    assert 'Sci-Fi, Science, "Fiction", no genre' in html.unescape(read_words(page))
    head.post(f"{LIST}bulk_edit/", read_inputs(read_text(page)))
    run_operations()
    new_genres = [Book.objects.get(pk=book.pk).genre for book in books]
    assert new_genres == ['Science, "Fiction"'] * 5 + ["Fantasy"]
    head.post(f"{LIST}operations/{Operation.objects.get().pk}/undo/")
    run_operations()
    assert [Book.objects.get(pk=book.pk).genre for book in books] == genres


def test_genres_that_are_none_change_nothing(head: Client) -> None:
    create_book(genre="Novel")
    assert "Tick the genres" in read_words(rename(head, [], "Tale"))
    assert "cannot read a filter of the list" in read_words(rename(head, ["Nov\0el"], "Tale"))
    # The address of the preview has them all.
    for names in (["a"] * 101, ["ü" * 200] * 20):
        assert "Tick fewer genres" in read_words(rename(head, names, "Tale"))
    assert "Edit 0 books" in read_words(rename(head, ["a"] * 100, "Tale"))
    for text in ("[]", "x", "[1]", '["\\ud800"]', "[" * 2_000, json.dumps([""] * 999, separators=(",", ":"))):
        response = head.post(f"{LIST}bulk_edit/?{urlencode({'genres': text})}", {"change": "set", "genre": "Tale"})
        assert response.status_code == 302, text


def test_who_edits_no_list_sees_genres_without_rename(librarian: Client) -> None:
    create_book(genre="Novel")
    page = read_text(librarian.get(GENRES))
    assert "Novel" in page
    assert "checkbox" not in page.partition("<main")[2].partition("</main>")[0]


def test_any_text_can_be_a_position(head: Client) -> None:
    for text in ('[false,"\\u0000"]', '[false,"\\ud800"]', '[true,"a"]', "x" * 5_000, "\0"):
        cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        assert head.get(GENRES, {"cursor": cursor}).status_code == 200, text
