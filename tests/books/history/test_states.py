"""The states that a book had, computed from its history."""

from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from books.history.states import UnknownVersion, find_state, read_deleted_book
from books.members import MEMBERS
from books.models import Book, Change
from books.rows import BookRow
from books.writing import changes
from books.writing.merging import merge_books
from tests.support.books import ACTOR, build_book
from tests.support.strategies import hypothesis_settings

pytestmark = pytest.mark.usefixtures("db")


def require_nothing(book: BookRow) -> None:
    """Lets every change be made."""


def add_book(**members: Any) -> int:
    return changes.create_book(build_book(**members), ACTOR, timezone.now()).id


def change_book(pk: int, **members: Any) -> None:
    changes.change_book(pk, members, require_nothing, ACTOR, timezone.now())


def delete_book(pk: int) -> None:
    changes.delete_book(pk, require_nothing, ACTOR, timezone.now())


def restore_book(pk: int) -> None:
    changes.restore_book(pk, ACTOR, timezone.now())


def read_members(pk: int) -> dict[str, Any]:
    return dict(Book.objects.filter(pk=pk).values(*MEMBERS).get())


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
    states = [read_members(pk)]
    for members in ({"year": 1816}, {"title": "Émma", "available": False}, {"year": -3}, {"title": "Emma"}):
        change_book(pk, **members)
        states.append(read_members(pk))
    assert [find_state(pk, version) for version in range(1, 6)] == states
    assert list_known_versions(pk) == [1, 2, 3, 4, 5]


def test_the_states_of_a_deleted_book_are_found() -> None:
    pk = add_book()
    first = read_members(pk)
    change_book(pk, year=1816)
    second = read_members(pk)
    delete_book(pk)
    assert [find_state(pk, version) for version in (1, 2)] == [first, second]
    # Version 3 is the deletion.
    assert list_known_versions(pk) == [1, 2]


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
@pytest.mark.parametrize(
    ("missing", "unknown"), [([1], []), ([2], [1]), ([3], [1, 2]), ([4], [1, 2, 3]), ([2, 4], [1, 2, 3])]
)
def test_versions_are_known_down_to_the_first_gap(missing: list[int], unknown: list[int]) -> None:
    pk = add_book()
    for year in (2, 3, 4):
        change_book(pk, year=year)
    Change.objects.filter(version__in=missing).delete()
    assert list_known_versions(pk) == [version for version in (1, 2, 3, 4) if version not in unknown]


@pytest.mark.unrecorded
def test_a_deletion_knows_the_states_before_a_gap() -> None:
    pk = add_book(year=1)
    change_book(pk, year=2)
    delete_book(pk)
    restore_book(pk)
    change_book(pk, year=3)
    change_book(pk, year=4)
    Change.objects.filter(version=5).delete()
    assert [find_state(pk, version)["year"] for version in (1, 2, 5, 6)] == [1, 2, 3, 4]
    assert list_known_versions(pk) == [1, 2, 5, 6]


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_a_change_that_was_never_recorded_is_a_gap() -> None:
    """Older code still changes books while the library is updated."""
    pk = add_book(year=1)
    Book._base_manager.filter(pk=pk).update(year=2, version=2)
    change_book(pk, year=3)
    assert list_known_versions(pk) == [2, 3]


def test_the_states_of_a_merged_book_are_known() -> None:
    kept, merged = add_book(), add_book(year=1)
    change_book(merged, year=2)
    merge_books(kept, {kept: 1, merged: 2}, {}, ACTOR, timezone.now())
    assert [find_state(merged, version)["year"] for version in (1, 2)] == [1, 2]
    assert list_known_versions(merged) == [1, 2]
    restore_book(merged)
    assert (list_known_versions(merged), read_members(merged)["year"]) == ([1, 2, 4], 2)


@pytest.mark.parametrize("pk", [0, -1, 987_654_321, 10**30])
@pytest.mark.parametrize("version", [-(10**30), 0, 1, 2**31, 10**30])
def test_a_book_that_never_existed_has_no_state(pk: int, version: int) -> None:
    assert not is_known(pk, version)


@pytest.mark.unannounced
@pytest.mark.unrecorded
def test_a_book_whose_deletion_was_not_recorded_cannot_be_restored() -> None:
    pk = add_book()
    delete_book(pk)
    restore_book(pk)
    assert read_deleted_book(pk, timezone.now()) is None
    Book._base_manager.all().delete()
    assert read_deleted_book(pk, timezone.now()) is None


changed_members = st.fixed_dictionaries(
    {}, optional={"title": st.sampled_from("abc"), "year": st.integers(-2, 2), "available": st.booleans()}
)


@hypothesis_settings
@given(steps=st.lists(changed_members | st.just("delete"), max_size=8))
def test_any_state_that_a_book_had_is_found(steps: list[Any]) -> None:
    pk = add_book(title="a", year=0)
    states = {1: read_members(pk)}
    for step in steps:
        if step == "delete":
            delete_book(pk)
            restore_book(pk)
        else:
            change_book(pk, **step)
        states[Book.objects.get(pk=pk).version] = read_members(pk)
    assert {version: find_state(pk, version) for version in states} == states
    gaps = set(range(1, max(states))) - states.keys()
    assert not any(is_known(pk, version) for version in gaps)
