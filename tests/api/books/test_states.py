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

pytestmark = pytest.mark.usefixtures("db")


def add_book(**fields: Any) -> int:
    return changes.create_book(build_book(**fields), ACTOR, timezone.now()).id


def change_book(pk: int, **fields: Any) -> None:
    changes.change_book(pk, fields, None, ACTOR, timezone.now())


def delete_book(pk: int) -> None:
    changes.delete_book(pk, None, ACTOR, timezone.now())


def restore_book(pk: int) -> None:
    changes.restore_book(pk, ACTOR, timezone.now())


def read_fields(pk: int) -> dict[str, Any]:
    return dict(Book.objects.filter(pk=pk).values(*FIELDS).get())


def list_known_versions(pk: int) -> list[int]:
    return [version for version in range(-1, 12) if is_known(pk, version)]


def is_known(pk: int, version: int) -> bool:
    try:
        find_state(pk, version)
    except UnknownVersion:
        return False
    return True


def test_each_state_is_found() -> None:
    pk = add_book(title="Emma", year=1815)
    states = [read_fields(pk)]
    for fields in ({"year": 1816}, {"title": "Émma", "available": False}, {"year": -3}, {"title": "Emma"}):
        change_book(pk, **fields)
        states.append(read_fields(pk))
    for _ in ("there", "deleted"):
        assert [find_state(pk, version) for version in range(1, 6)] == states
        # Version 6 is the deletion.
        assert list_known_versions(pk) == [1, 2, 3, 4, 5]
        delete_book(pk) if Book.objects.exists() else None


def test_the_states_before_and_after_restorations_are_found() -> None:
    pk = add_book(year=1)
    for year in (2, 3):
        delete_book(pk)
        restore_book(pk)
        change_book(pk, year=year)
    assert [(version, find_state(pk, version)["year"]) for version in (1, 3, 4, 6, 7)] == [
        (1, 1),
        (3, 1),
        (4, 2),
        (6, 2),
        (7, 3),
    ]
    assert list_known_versions(pk) == [1, 3, 4, 6, 7]


@pytest.mark.unrecorded
def test_a_book_that_is_older_than_its_history_is_known_from_its_first_version() -> None:
    changes.create_books([build_book(year=1)], None, timezone.now())
    pk = Book.objects.get().pk
    assert list_known_versions(pk) == [1]
    change_book(pk, year=2)
    assert [find_state(pk, version)["year"] for version in (1, 2)] == [1, 2]
    assert list_known_versions(pk) == [1, 2]


@pytest.mark.unrecorded
def test_versions_are_known_down_to_the_first_gap() -> None:
    for missing, known in (([1], [1, 2, 3, 4]), ([2], [2, 3, 4]), ([3], [3, 4]), ([4], [4]), ([2, 4], [4])):
        pk = add_book()
        for year in (2, 3, 4):
            change_book(pk, year=year)
        Change.objects.filter(book_id=pk, version__in=missing).delete()
        assert list_known_versions(pk) == known, missing


def test_a_change_between_the_reads_of_book_and_history_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pk, find_present_state = add_book(year=1), states.find_present_state
    change_book(pk, year=2)

    def find_and_change(book_id: int) -> BookState:
        state = find_present_state(book_id)
        change_book(pk, year=3)
        return state

    monkeypatch.setattr(states, "find_present_state", find_and_change)
    assert find_state(pk, 1)["year"] == 1


def test_the_states_of_a_merged_book_are_known() -> None:
    kept, merged = add_book(), add_book(year=1)
    change_book(merged, year=2)
    merge_books(kept, {kept: 1, merged: 2}, {}, ACTOR, timezone.now())
    assert [find_state(merged, version)["year"] for version in (1, 2)] == [1, 2]
    assert list_known_versions(merged) == [1, 2]
    restore_book(merged)
    assert (list_known_versions(merged), read_fields(merged)["year"]) == ([1, 2, 4], 2)


def test_a_book_that_never_existed_has_no_state() -> None:
    ids = product((0, -1, 987_654_321, 10**30), (-(10**30), 0, 1, 2**31, 10**30))
    assert [pair for pair in ids if is_known(*pair)] == []
