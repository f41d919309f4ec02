"""The changes of a person are exported in pages, however many there are."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from books.history import change_pages
from books.history.actors import get_or_create_actor
from books.management.personal_data import export_data
from books.models import Actor, Change
from oauth.management.users import Person
from tests.support.memory import trace_memory

# Changes without books.
pytestmark = [pytest.mark.django_db, pytest.mark.unrecorded]

START = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


def create_changes(user: User, channel: str, count: int, first_book: int = 1) -> None:
    """Writes changes, of which three at a time have the same time."""
    actor = get_or_create_actor(channel, user_id=user.pk).id
    Change.objects.bulk_create(
        Change(
            book_id=first_book + number,
            version=2,
            kind=2,
            at=START + number // 3 * timedelta(seconds=1),
            actor_id=actor,
            before={"year": number},
            after={"year": 0},
        )
        for number in range(count)
    )


def list_changes(user: User) -> list[dict[str, Any]]:
    return list(dict(export_data(Person(user.username, user.pk)))["changes"])


@pytest.mark.parametrize("count", [0, 4, 9])
def test_no_change_is_missing_or_there_twice(ada: User, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_pages, "ITERATION_PAGE", 4)
    create_changes(ada, Actor.Channel.V2, count)
    create_changes(ada, Actor.Channel.ADMIN, count, first_book=1_000)
    create_changes(User.objects.create_user("astrid"), Actor.Channel.V2, 3, first_book=2_000)
    books = [change["book"] for change in list_changes(ada)]
    assert books == [*range(1, count + 1), *range(1_000, 1_000 + count)]


def test_more_changes_need_no_more_memory(ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_pages, "ITERATION_PAGE", 50)
    peaks = []
    for count in (100, 600):
        create_changes(ada, Actor.Channel.V2, count, first_book=count * 10)
        changes = dict(export_data(Person("ada", ada.pk)))["changes"]
        with trace_memory() as memory, memory.measure():
            assert sum(1 for _ in changes) >= count
        peaks.append(memory.peak)
    assert peaks[1] < 1.5 * peaks[0]
