"""The states that a book had, computed from its history."""

from itertools import product
from typing import Any

import pytest
from django.utils import timezone

from books.book.fields import FIELDS
from books.history import states
from books.history.states import BookState, UnknownVersion, find_state
from books.models import Book, Change
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.books import ACTOR, build_book
from tests.support.books_admin import change_book, create_book, delete_book

pytestmark = pytest.mark.usefixtures("db")


def restore_book(book: Book) -> None:
    changes.restore_book(book.pk, ACTOR, timezone.now())


def read_fields(book: Book) -> dict[str, Any]:
    return dict(Book.objects.filter(pk=book.pk).values(*FIELDS).get())


def list_known_versions(book: Book) -> list[int]:
    return [version for version in range(-1, 12) if is_known(book.pk, version)]


def is_known(pk: int, version: int) -> bool:
    try:
        find_state(pk, version)
    except UnknownVersion:
        return False
    return True


def test_each_state_is_found() -> None:
    book = create_book(title="Emma", year=1815)
    states = [read_fields(book)]
    for fields in ({"year": 1816}, {"title": "Émma", "available": False}, {"year": -3}, {"title": "Emma"}):
        change_book(book, **fields)
        states.append(read_fields(book))
    for _ in ("there", "deleted"):
        assert [find_state(book.pk, version) for version in range(1, 6)] == states
        # Version 6 is the deletion.
        assert list_known_versions(book) == [1, 2, 3, 4, 5]
        delete_book(book) if Book.objects.exists() else None


def test_the_states_before_and_after_restorations_are_found() -> None:
    book = create_book(year=1)
    for year in (2, 3):
        delete_book(book)
        restore_book(book)
        change_book(book, year=year)
    assert [(version, find_state(book.pk, version)["year"]) for version in (1, 3, 4, 6, 7)] == [
        (1, 1),
        (3, 1),
        (4, 2),
        (6, 2),
        (7, 3),
    ]
    assert list_known_versions(book) == [1, 3, 4, 6, 7]


@pytest.mark.unrecorded
def test_a_book_that_is_older_than_its_history_is_known_from_its_first_version() -> None:
    changes.create_books([build_book(year=1)], None, timezone.now())
    book = Book.objects.get()
    assert list_known_versions(book) == [1]
    change_book(book, year=2)
    assert [find_state(book.pk, version)["year"] for version in (1, 2)] == [1, 2]
    assert list_known_versions(book) == [1, 2]


@pytest.mark.unrecorded
def test_versions_are_known_down_to_the_first_gap() -> None:
    for missing, known in (([1], [1, 2, 3, 4]), ([2], [2, 3, 4]), ([3], [3, 4]), ([4], [4]), ([2, 4], [4])):
        book = create_book()
        for year in (2, 3, 4):
            change_book(book, year=year)
        Change.objects.filter(book_id=book.pk, version__in=missing).delete()
        assert list_known_versions(book) == known, missing


def test_a_change_between_the_reads_of_book_and_history_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    book, find_present_state = create_book(year=1), states.find_present_state
    change_book(book, year=2)

    def find_and_change(book_id: int) -> BookState:
        state = find_present_state(book_id)
        change_book(book, year=3)
        return state

    monkeypatch.setattr(states, "find_present_state", find_and_change)
    assert find_state(book.pk, 1)["year"] == 1


def test_the_states_of_a_merged_book_are_known() -> None:
    kept, merged = create_book(), create_book(year=1)
    change_book(merged, year=2)
    merge_books(kept.pk, {kept.pk: 1, merged.pk: 2}, {}, ACTOR, timezone.now())
    assert [find_state(merged.pk, version)["year"] for version in (1, 2)] == [1, 2]
    assert list_known_versions(merged) == [1, 2]
    restore_book(merged)
    assert (list_known_versions(merged), read_fields(merged)["year"]) == ([1, 2, 4], 2)


def test_a_book_that_never_existed_has_no_state() -> None:
    ids = product((0, -1, 987_654_321, 10**30), (-(10**30), 0, 1, 2**31, 10**30))
    assert [pair for pair in ids if is_known(*pair)] == []
