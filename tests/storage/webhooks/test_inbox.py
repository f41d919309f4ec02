"""Received events are processed once, even when workers fail, die or run at the same time."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any, NoReturn

import pytest
from django.db import connection
from django.utils import timezone

from library_site.db.texts import MAX_ERROR_LENGTH
from library_site.jobs.leases import LEASE_TIME, MAX_LOST_WORKERS
from tests.support.concurrency import run_and_disconnect
from tests.support.sources import create_source, make_all_due, store_received
from webhooks import inbox
from webhooks.inbox import (
    UnknownSource,
    claim_due_event,
    process_due,
    process_event,
    register_handler,
    requeue_dead,
    store_event,
)
from webhooks.models import Received, Source

CHANCE = 0.5
KIND = "shelf.moved"


class Shelf:
    """A handler that records its arguments, and writes something: a source with the event's id as its name."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any], datetime]] = []

    def __call__(self, received: Received, body: dict[str, Any], now: datetime) -> None:
        self.calls.append((received.event_id, body, now))
        Source.objects.create(name=body["id"], created_at=now)

    @property
    def event_ids(self) -> list[str]:
        return [event_id for event_id, _, _ in self.calls]


@pytest.fixture(autouse=True)
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No handlers but those that a test registers."""
    monkeypatch.setattr(inbox, "HANDLERS_BY_KIND", defaultdict(list))


@pytest.fixture
def shelf(empty_registry: None) -> Shelf:
    return register_handler(KIND)(Shelf())  # type: ignore[return-value]  # returns the Shelf itself


@pytest.fixture
def branch(db: None) -> Source:
    return create_source()


def fail(*_: object) -> NoReturn:
    raise ValueError("The shelf is nailed down.")


def process_all() -> int:
    """Returns how many were due."""
    count = 0
    while process_due(lambda: CHANCE):
        count += 1
    return count


def is_near(moment: datetime | None, expected: datetime) -> bool:
    return moment is not None and abs(moment - expected) < timedelta(seconds=5)


def test_an_event_is_processed_once(branch: Source, shelf: Shelf) -> None:
    row = store_received(branch, data={"to": "ü"})
    assert (process_all(), process_all()) == (1, 0)
    [(event_id, body, now)] = shelf.calls
    assert (event_id, body["id"], body["data"]) == (row.event_id, row.event_id, {"to": "ü"})
    assert is_near(now, timezone.now())
    row.refresh_from_db()
    assert (row.state, row.next_at, row.lease, row.error) == ("done", None, None, "")
    assert (row.attempted, row.claimed) == (1, 1)
    assert is_near(row.finished_at, timezone.now())


def test_every_handler_of_a_kind_is_called(branch: Source) -> None:
    calls: list[str] = []
    register_handler(KIND, "shelf.burnt")(lambda *arguments: calls.append(f"first {arguments[0].kind}"))
    register_handler(KIND)(lambda *arguments: calls.append(f"second {arguments[0].kind}"))
    for kind in (KIND, "shelf.burnt"):
        store_received(branch, event=kind)
    process_all()
    assert calls == [f"first {KIND}", f"second {KIND}", "first shelf.burnt"]
    # An event without a handler is done.
    store_received(branch, event="shelf.painted")
    assert process_all() == 1
    assert set(Received.objects.values_list("state", flat=True)) == {"done"}


def test_the_oldest_events_are_processed_first(branch: Source, shelf: Shelf) -> None:
    events = [store_received(branch) for _ in range(5)]
    assert process_all() == 5
    assert shelf.event_ids == [event.event_id for event in events]


def test_an_event_of_a_deleted_source_is_not_stored(transactional_db: None) -> None:
    deleted_source = create_source()
    Source.objects.all().delete()
    with pytest.raises(UnknownSource):
        store_event(deleted_source, "1", KIND, b"{}")


def test_only_what_is_dead_becomes_due_again(branch: Source) -> None:
    row = store_received(branch)
    for state, count in (("waiting", 0), ("done", 0), ("dead", 1)):
        Received.objects.update(state=state, next_at=None)
        assert requeue_dead(Received.objects.filter(pk=row.pk)) == count
        assert Received.objects.filter(next_at__isnull=False).count() == count, state


def test_a_failure_leaves_nothing_behind_and_holds_up_no_other_event(branch: Source, shelf: Shelf) -> None:
    register_handler("shelf.burnt")(shelf)
    register_handler("shelf.burnt")(fail)
    row, other = store_received(branch, event="shelf.burnt"), store_received(branch)
    assert process_all() == 2
    assert shelf.event_ids == [row.event_id, other.event_id]
    assert not Source.objects.filter(name=row.event_id).exists()
    row.refresh_from_db()
    assert (row.state, row.attempted, row.lease, row.finished_at) == ("waiting", 1, None, None)
    assert row.error == "ValueError: The shelf is nailed down."
    assert is_near(row.next_at, timezone.now() + timedelta(seconds=10))
    assert process_all() == 0


def test_a_failed_event_is_tried_four_times_more(branch: Source) -> None:
    handlers: list[Callable[..., None]] = [*[fail] * 5, Shelf()]
    register_handler(KIND)(lambda *arguments: handlers.pop(0)(*arguments))
    row = store_received(branch)
    waits = []
    while process_all():
        row.refresh_from_db()
        waits.append(row.next_at and round((row.next_at - timezone.now()).total_seconds()))
        make_all_due()
    assert waits == [10, 60, 600, 3600, None]
    assert (row.state, row.attempted, row.claimed, row.lease) == ("dead", 5, 5, None)
    assert row.error == "ValueError: The shelf is nailed down."
    assert is_near(row.finished_at, timezone.now())
    requeue_dead(Received.objects.all())
    process_all()
    row.refresh_from_db()
    assert (row.state, row.error, Source.objects.filter(name=row.event_id).exists()) == ("done", "", True)


def test_any_error_message_can_be_stored(branch: Source) -> None:
    messages = ["\0", "\ud800", "ü" * 10_000]

    def fail_with_message(received: Received, *_: object) -> NoReturn:
        raise ValueError(messages[int(received.event_id)])

    register_handler(KIND)(fail_with_message)
    for number in range(3):
        store_received(branch, id=str(number))
    process_all()
    errors = [*Received.objects.values_list("error", flat=True)]
    assert [error.startswith("ValueError: ") for error in errors] == [True] * 3
    assert max(map(len, errors)) <= MAX_ERROR_LENGTH


def test_a_failed_statement_is_a_failure_like_others(branch: Source) -> None:
    register_handler(KIND)(lambda *_: connection.cursor().execute("SELECT shelf FROM nowhere"))
    row = store_received(branch)
    process_all()
    row.refresh_from_db()
    assert (row.attempted, row.state) == (1, "waiting")
    assert "nowhere" in row.error


def test_an_event_is_claimed_by_one_worker_at_a_time_and_one_that_comes_too_late_gives_up(
    branch: Source, shelf: Shelf
) -> None:
    row = store_received(branch)
    [first] = claim_due_event()
    assert is_near(first.next_at, timezone.now() + LEASE_TIME)
    assert (first.claimed, first.attempted, first.lease is None) == (1, 0, False)
    assert claim_due_event() == []
    make_all_due()
    [second] = claim_due_event()
    assert (second.claimed, second.attempted, second.lease != first.lease) == (2, 0, True)
    process_event(first, CHANCE)
    assert shelf.calls == []
    process_event(second, CHANCE)
    process_event(first, CHANCE)
    process_event(second, CHANCE)
    assert shelf.event_ids == [second.event_id]
    row.refresh_from_db()
    assert (row.state, row.attempted, row.claimed) == ("done", 1, 2)


def test_a_worker_that_is_killed_leaves_nothing_behind(branch: Source, shelf: Shelf) -> None:
    def exit_worker(*_: object) -> NoReturn:
        raise SystemExit

    register_handler(KIND)(exit_worker)
    row = store_received(branch)
    with pytest.raises(SystemExit):
        process_all()
    row.refresh_from_db()
    assert (row.state, row.attempted, row.claimed) == ("waiting", 0, 1)
    assert not Source.objects.filter(name=row.event_id).exists()


def test_an_event_that_kills_workers_is_given_up(branch: Source) -> None:
    row = store_received(branch)
    claims = []
    for _ in range(MAX_LOST_WORKERS + 2):
        claims.append(len(claim_due_event()))
        make_all_due()
    assert claims == [1] * MAX_LOST_WORKERS + [0, 0]
    row.refresh_from_db()
    assert (row.state, row.attempted, row.next_at, row.lease) == ("dead", 0, None, None)
    assert row.error.startswith("Given up")


def test_workers_share_the_waiting_events(transactional_db: None) -> None:
    event_ids: list[str] = []
    register_handler(KIND)(lambda *arguments: event_ids.append(arguments[0].event_id))
    branch = create_source()
    expected_ids = [store_received(branch).event_id for _ in range(16)]

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(run_and_disconnect, process_all) for _ in range(4)]:
            future.result()
    assert sorted(event_ids) == sorted(expected_ids)
    assert set(Received.objects.values_list("state", "attempted", "claimed")) == {("done", 1, 1)}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers follow one another anyway")
def test_a_slow_worker_keeps_the_event_it_has_begun(transactional_db: None) -> None:
    is_started, may_finish = Event(), Event()

    def wait_for_release(received: Received, body: dict[str, Any], now: datetime) -> None:
        is_started.set()
        assert may_finish.wait(60)

    register_handler(KIND)(wait_for_release)
    store_received(create_source())
    [leased] = claim_due_event()
    make_all_due()
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run_and_disconnect, lambda: process_event(leased, CHANCE))
        assert is_started.wait(60)
        assert claim_due_event() == []
        may_finish.set()
        future.result()
    assert Received.objects.get().state == "done"
