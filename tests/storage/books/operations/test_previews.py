"""Previews say exactly what the operation does."""

import sys
from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from books.book.fields import MAX_LENGTHS
from books.history.actors import ActorRef, get_or_create_actor
from books.models import Actor, Book
from books.operations.edits import Edit
from books.operations.previews import BLANK_CHARACTERS, MAX_PREVIEWED_BOOKS, Sample, preview_deletion, preview_edit
from tests.support.books_admin import create_book
from tests.support.operations import create_head_librarian, do_edit
from tests.support.strategies import hypothesis_settings

EDITS = [
    Edit({"year": 1, "genre": "Novel", "available": False}),
    Edit({"isbn": "1-1"}),
    Edit({}, "title", "a", "b"),
    Edit({}, "title", "%", ""),
    Edit({}, "genre", "a", "aaaa"),
    Edit({}, "genre", "Novel", " "),
    Edit({}, "isbn", "-", ""),
]


@pytest.mark.parametrize("edit", EDITS)
def test_the_numbers_are_those_of_the_operation(db: None, edit: Edit) -> None:
    create_book(title="a%A_a", genre="Novel", isbn="1-1", year=1)
    create_book(title="B\\", genre="a" * 60, isbn="11", available=False)
    create_book(title="a", genre="Novel", isbn="1-2", year=1, available=False)
    create_book(title="%", genre="Novels", isbn="-1-2")
    preview = preview_edit(Book.objects.all(), edit)
    operation = do_edit(create_head_librarian(), edit)
    assert (preview.matched, preview.would_change) == (operation.matched, operation.changed)
    assert preview.conflicts + preview.invalid == operation.refused


def test_a_preview_of_whole_fields_counts_all_books_and_those_that_change(
    db: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    """Each count can read a million books. The third statement reads the samples."""
    create_book(genre="Novel")
    with django_assert_num_queries(3):
        preview_edit(Book.objects.all(), Edit({"genre": "Novels"}))


# What `str.strip` takes off, and what looks like it but is a character.
BLANK_TEXTS = st.text(st.sampled_from([*BLANK_CHARACTERS, "\u200b", "\u180e", "a"]), min_size=1, max_size=3)


def test_blanks_are_what_python_takes_off() -> None:
    assert {chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()} == set(BLANK_CHARACTERS)


@hypothesis_settings
@given(BLANK_TEXTS, BLANK_TEXTS, st.sampled_from(["", "b"]))
def test_a_preview_agrees_about_blank_texts(db: None, blank: str, replacement: str, end: str) -> None:
    book = create_book(genre=f"b{blank}{end}")
    books, edit = Book.objects.filter(pk=book.pk), Edit({}, "genre", "b", replacement)
    preview = preview_edit(books, edit)
    operation = do_edit(get_or_create_head(), edit, isbn=book.isbn)
    assert (preview.would_change, preview.invalid) == (operation.changed, operation.refused)
    assert [sample.after for sample in preview.samples] == [
        {"genre": genre} for genre in books.values_list("genre", flat=True) if operation.changed
    ]


@pytest.mark.parametrize(("length", "invalid"), [(MAX_LENGTHS["genre"], 0), (MAX_LENGTHS["genre"] + 1, 1)])
def test_the_longest_text_is_the_same_for_the_preview_and_the_edit(db: None, length: int, invalid: int) -> None:
    # Characters count: these have four bytes in UTF-8, and two units in UTF-16.
    create_book(genre="a")
    edit = Edit({}, "genre", "a", "\U0001f4d6" * length)
    preview = preview_edit(Book.objects.all(), edit)
    operation = do_edit(get_or_create_head(), edit)
    assert (preview.would_change, preview.invalid) == (1 - invalid, invalid) == (operation.changed, operation.refused)


def get_or_create_head() -> ActorRef:
    user = User.objects.filter(username="head").first()
    return get_or_create_actor(Actor.Channel.OPERATION, user_id=user.pk) if user else create_head_librarian()


def test_samples_show_the_fields_that_change(db: None) -> None:
    book = create_book(year=1813, genre="Novel")
    assert preview_edit(Book.objects.all(), Edit({"year": 1, "genre": "Novel"})).samples == [
        Sample(book.pk, book.title, {"year": 1813}, {"year": 1})
    ]
    samples = preview_edit(Book.objects.all(), Edit({}, "genre", "Nov", "Mov")).samples
    assert samples == [Sample(book.pk, book.title, {"genre": "Novel"}, {"genre": "Movel"})]


def test_a_deletion_shows_whole_books(db: None) -> None:
    books: list[Any] = [create_book() for _ in range(MAX_PREVIEWED_BOOKS + 1)]
    preview = preview_deletion(Book.objects.all())
    assert (preview.matched, preview.would_change, len(preview.samples)) == (21, 21, MAX_PREVIEWED_BOOKS)
    assert preview.samples[0].before["isbn"] == books[0].isbn
    assert preview.samples[0].after is None
