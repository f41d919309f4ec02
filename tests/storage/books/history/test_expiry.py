"""How long the history is kept."""

from datetime import datetime, timedelta
from itertools import islice

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import Settings

from books.book_values import BookValues
from books.history import expiry
from books.history.actors import record_operation
from books.history.expiry import iter_expired
from books.models import Book, Change, Operation
from books.operations.lifecycle import store_operation
from books.writing import changes
from library_site.jobs.expiry import delete_by_kind
from tests.support.books import ACTOR, build_book

# Expiry deletes what each test would compare with the changes.
pytestmark = [pytest.mark.django_db, pytest.mark.unrecorded]

NOW = timezone.now()
DAY = timedelta(days=1)
CREATED, CHANGED, DELETED, RESTORED, _ = Change.Kind.values


@pytest.fixture(autouse=True)
def kept_days(settings: Settings) -> None:
    settings.HISTORY_KEPT_DAYS = 100


def create_book(days_ago: int) -> BookValues:
    return changes.create_book(build_book(), ACTOR, NOW - days_ago * DAY)


def change_book(book: BookValues, year: int, days_ago: int) -> None:
    changes.change_book(book.id, {"year": year}, None, ACTOR, NOW - days_ago * DAY)


def delete_book(book: BookValues, days_ago: int) -> None:
    changes.delete_book(book.id, None, ACTOR, NOW - days_ago * DAY)


def list_kinds(book: BookValues) -> list[tuple[int, int]]:
    """Returns the version and the kind of each change that is left."""
    return list(Change.objects.filter(book_id=book.id).order_by("version").values_list("version", "kind"))


def delete_expired_history(now: datetime = NOW) -> dict[str, int]:
    return {kind: count for kind, count in delete_by_kind(iter_expired(now)).items() if count}


def test_old_changes_are_deleted_but_the_creation_and_the_last() -> None:
    book, other = create_book(400), create_book(400)
    for year, days_ago in enumerate((300, 200, 101), 1900):
        change_book(book, year, days_ago)
    assert delete_expired_history() == {"changes": 2}
    assert list_kinds(book) == [(1, CREATED), (4, CHANGED)]
    assert list_kinds(other) == [(1, CREATED)]
    change_book(book, 1903, 0)
    assert delete_expired_history() == {"changes": 1}


@pytest.mark.parametrize(("age", "count"), [(100 * DAY - timedelta(seconds=1), 0), (100 * DAY, 1)])
def test_changes_are_kept_for_so_many_days(age: timedelta, count: int) -> None:
    book = create_book(400)
    changes.change_book(book.id, {"year": 1900}, None, ACTOR, NOW - age)
    change_book(book, 1901, 0)
    assert delete_by_kind(iter_expired(NOW))["changes"] == count


def test_the_deletion_stays_so_that_the_book_can_be_restored() -> None:
    book = create_book(400)
    change_book(book, 1900, 300)
    delete_book(book, 200)
    assert delete_expired_history() == {"changes": 1}
    restored = changes.restore_book(book.id, ACTOR, NOW - 150 * DAY)
    assert (restored.year, restored.created_at) == (1900, book.created_at)
    assert delete_expired_history() == {"changes": 1}
    assert list_kinds(book) == [(1, CREATED), (4, RESTORED)]


def test_without_the_setting_the_history_is_kept_for_ever(settings: Settings) -> None:
    settings.HISTORY_KEPT_DAYS = 0
    book = create_book(30_000)
    change_book(book, 1900, 20_000)
    change_book(book, 1901, 10_000)
    assert delete_by_kind(iter_expired(NOW)) == {}


def test_operations_go_with_the_last_of_their_changes() -> None:
    old, unused, recent = (record_operation("mark", ACTOR, NOW - days * DAY) for days in (400, 400, 0))
    book = create_book(400)
    changes.change_book(book.id, {"year": 1900}, None, old, NOW - 300 * DAY)
    assert delete_expired_history() == {"operations": 1}
    assert unused.operation_id not in Operation.objects.values_list("pk", flat=True)
    change_book(book, 1901, 0)
    assert delete_expired_history() == {"changes": 1, "operations": 1}
    assert Operation.objects.get().pk == recent.operation_id
    for state in ("waiting", "running"):
        operation = store_operation("edit", {}, ACTOR, NOW - 400 * DAY)
        Operation.objects.filter(pk=operation.pk).update(state=state)
        assert delete_expired_history() == {}, state
        Operation.objects.filter(pk=operation.pk).update(next_at=None, state="cancelled")
        assert delete_expired_history() == {"operations": 1}, state


def test_an_interrupted_expiry_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "ID_RANGE", 3)
    book = create_book(400)
    for number in range(10):
        change_book(book, number, 300 - number)
    counts = delete_by_kind(islice(iter_expired(NOW), 2))
    assert 0 < counts["changes"] < 9
    assert delete_expired_history() == {"changes": 9 - counts["changes"]}
    assert list_kinds(book) == [(1, CREATED), (11, CHANGED)]


def test_the_command_clears_the_history(capsys: pytest.CaptureFixture[str]) -> None:
    book = create_book(400)
    change_book(book, 1900, 300)
    change_book(book, 1901, 200)
    call_command("clear_expired")
    assert "1 changes deleted.\n0 operations deleted.\n" in capsys.readouterr().out
    assert Book.objects.get().year == 1901
