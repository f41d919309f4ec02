"""Previews say exactly what the operation does."""

from typing import Any

import pytest

from books.models import Book
from books.operations.edits import Edit
from books.operations.previews import MAX_SAMPLES, Sample, preview_deletion, preview_edit
from tests.support.books_admin import create_book
from tests.support.operations import create_head_librarian, do_edit

EDITS = [
    Edit({"year": 1}),
    Edit({"year": 1, "genre": "Novel", "available": False}),
    Edit({"isbn": "1-1"}),
    Edit({"isbn": "new"}),
    Edit({}, "title", "a", "b"),
    Edit({}, "title", "%", ""),
    Edit({}, "genre", "a", "aaaa"),
    Edit({}, "genre", "Novel", " "),
    Edit({}, "isbn", "-", ""),
    Edit({}, "isbn", "1", "2"),
    Edit({}, "author", "Jane", "Jane"),
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


def test_samples_show_the_members_that_change(db: None) -> None:
    book = create_book(year=1813, genre="Novel")
    assert preview_edit(Book.objects.all(), Edit({"year": 1, "genre": "Novel"})).samples == [
        Sample(book.pk, book.title, {"year": 1813}, {"year": 1})
    ]
    samples = preview_edit(Book.objects.all(), Edit({}, "genre", "Nov", "Mov")).samples
    assert samples == [Sample(book.pk, book.title, {"genre": "Novel"}, {"genre": "Movel"})]


def test_a_deletion_shows_whole_books(db: None) -> None:
    books: list[Any] = [create_book() for _ in range(MAX_SAMPLES + 1)]
    preview = preview_deletion(Book.objects.all())
    assert (preview.matched, preview.would_change, len(preview.samples)) == (21, 21, MAX_SAMPLES)
    assert preview.samples[0].before["isbn"] == books[0].isbn
    assert preview.samples[0].after is None
