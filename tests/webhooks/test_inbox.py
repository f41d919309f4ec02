"""What was received is carried out once, whatever becomes of the workers."""

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Event
from typing import Any, NoReturn

import pytest
from django.db import connection, connections
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.support.sources import received, source, time_passes
from webhooks import inbox
from webhooks.inbox import (
    MAX_ERROR_LENGTH,
    UnknownSource,
    claim_due,
    process_due,
    process_event,
    register_handler,
    store_event,
)
from webhooks.models import Received, Source
from webhooks.queue import LEASE_TIME, MAX_LOST_WORKERS

MIDDLE = 0.5
KIND = "shelf.moved"


class Shelf:
    """A handler that notes what it was given, and writes something: a source of the event's id."""

    def __init__(self) -> None:
        self.moved: list[tuple[str, dict[str, Any], datetime]] = []

    def __call__(self, received: Received, body: dict[str, Any], now: datetime) -> None:
        self.moved.append((received.event_id, body, now))
        Source.objects.create(name=body["id"], created_at=now)

    @property
    def ids(self) -> list[str]:
        return [event_id for event_id, _, _ in self.moved]


@pytest.fixture(autouse=True)
def nothing_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    """But what a test says."""
    monkeypatch.setattr(inbox, "HANDLERS_BY_KIND", defaultdict(list))


@pytest.fixture
def shelf(nothing_handled: None) -> Shelf:
    return register_handler(KIND)(Shelf())  # type: ignore[return-value]  # the same


@pytest.fixture
def branch(db: None) -> Source:
    return source()


def fail(*_: object) -> NoReturn:
    raise ValueError("The shelf is nailed down.")


def worked(limit: int = 100) -> int:
    return process_due(limit, lambda: MIDDLE)


def is_near(moment: datetime | None, expected: datetime) -> bool:
    return moment is not None and abs(moment - expected) < timedelta(seconds=5)


def test_an_event_is_carried_out_once(branch: Source, shelf: Shelf) -> None:
    waiting = received(branch, data={"to": "ü"})
    assert (worked(), worked()) == (1, 0)
    [(event_id, body, now)] = shelf.moved
    assert (event_id, body["id"], body["data"]) == (waiting.event_id, waiting.event_id, {"to": "ü"})
    assert is_near(now, timezone.now())
    waiting.refresh_from_db()
    assert (waiting.state, waiting.next_at, waiting.lease, waiting.error) == ("done", None, None, "")
    assert (waiting.attempted, waiting.claimed) == (1, 1)
    assert is_near(waiting.finished_at, timezone.now())


def test_each_handler_of_a_kind_takes_part(branch: Source) -> None:
    taken: list[str] = []
    register_handler(KIND, "shelf.burnt")(lambda *given: taken.append(f"first {given[0].kind}"))
    register_handler(KIND)(lambda *given: taken.append(f"second {given[0].kind}"))
    for kind in (KIND, "shelf.burnt"):
        received(branch, event=kind)
    worked()
    assert taken == [f"first {KIND}", f"second {KIND}", "first shelf.burnt"]


def test_an_event_that_nobody_takes_is_done(branch: Source) -> None:
    received(branch)
    assert worked() == 1
    assert Received.objects.get().state == "done"


def test_the_oldest_are_worked_off_first(branch: Source, shelf: Shelf) -> None:
    events = [received(branch) for _ in range(5)]
    assert [worked(limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert shelf.ids == [one.event_id for one in events]


def test_an_event_of_nobody_is_not_kept(transactional_db: None) -> None:
    gone = source()
    Source.objects.all().delete()
    with pytest.raises(UnknownSource):
        store_event(gone, "1", KIND, b"{}")


def test_workers_are_woken_after_the_commit(
    branch: Source, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        received(branch)
    assert len(callbacks) == 1


def test_a_failure_leaves_nothing_behind(branch: Source, shelf: Shelf) -> None:
    register_handler(KIND)(fail)
    waiting = received(branch)
    assert worked() == 1
    assert not Source.objects.filter(name=waiting.event_id).exists()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempted, waiting.lease, waiting.finished_at) == ("waiting", 1, None, None)
    assert waiting.error == "ValueError: The shelf is nailed down."
    assert is_near(waiting.next_at, timezone.now() + timedelta(seconds=10))
    assert worked() == 0


def test_a_failed_event_is_tried_four_times_more(branch: Source) -> None:
    register_handler(KIND)(fail)
    waiting = received(branch)
    waits = []
    while worked():
        waiting.refresh_from_db()
        waits.append(waiting.next_at and round((waiting.next_at - timezone.now()).total_seconds()))
        time_passes()
    assert waits == [10, 60, 600, 3600, None]
    assert (waiting.state, waiting.attempted, waiting.claimed, waiting.lease) == ("dead", 5, 5, None)
    assert waiting.error == "ValueError: The shelf is nailed down."
    assert is_near(waiting.finished_at, timezone.now())


def test_what_succeeds_later_is_done(branch: Source) -> None:
    answers: list[Callable[..., None]] = [fail, Shelf()]
    register_handler(KIND)(lambda *given: answers.pop(0)(*given))
    waiting = received(branch)
    worked()
    time_passes()
    worked()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempted, waiting.error) == ("done", 2, "")
    assert Source.objects.filter(name=waiting.event_id).exists()


def test_a_failure_holds_up_no_other_event(branch: Source, shelf: Shelf) -> None:
    register_handler("shelf.burnt")(fail)
    received(branch, event="shelf.burnt")
    other = received(branch)
    assert worked() == 2
    assert shelf.ids == [other.event_id]


@pytest.mark.parametrize("words", ["x" * 10_000, "\0", "\ud800", "ü" * 10_000])
def test_any_error_can_be_kept(branch: Source, words: str) -> None:
    def strange(*_: object) -> NoReturn:
        raise ValueError(words)

    register_handler(KIND)(strange)
    waiting = received(branch)
    worked()
    waiting.refresh_from_db()
    assert waiting.error.startswith("ValueError: ")
    assert len(waiting.error) <= MAX_ERROR_LENGTH


def test_a_failed_statement_is_a_failure_like_others(branch: Source) -> None:
    register_handler(KIND)(lambda *_: connection.cursor().execute("SELECT shelf FROM nowhere"))
    waiting = received(branch)
    worked()
    waiting.refresh_from_db()
    assert (waiting.attempted, waiting.state) == (1, "waiting")
    assert "nowhere" in waiting.error


def test_what_one_worker_has_no_other_takes(branch: Source) -> None:
    received(branch)
    [ours] = claim_due(10)
    assert is_near(ours.next_at, timezone.now() + LEASE_TIME)
    assert (ours.claimed, ours.attempted, ours.lease is None) == (1, 0, False)
    assert claim_due(10) == []


def test_what_a_dead_worker_had_another_takes(branch: Source, shelf: Shelf) -> None:
    received(branch)
    [lost] = claim_due(10)
    time_passes()
    [ours] = claim_due(10)
    assert ours.lease != lost.lease
    assert (ours.claimed, ours.attempted) == (2, 0)
    process_event(ours, MIDDLE)
    assert shelf.ids == [ours.event_id]


def test_a_worker_that_comes_too_late_gives_up(branch: Source, shelf: Shelf) -> None:
    waiting = received(branch)
    [late] = claim_due(10)
    time_passes()
    [ours] = claim_due(10)
    process_event(late, MIDDLE)
    assert shelf.moved == []
    process_event(ours, MIDDLE)
    process_event(late, MIDDLE)
    process_event(ours, MIDDLE)
    assert shelf.ids == [ours.event_id]
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempted, waiting.claimed) == ("done", 1, 2)


def test_a_worker_that_is_killed_leaves_nothing_behind(branch: Source, shelf: Shelf) -> None:
    def killed(*_: object) -> NoReturn:
        raise SystemExit

    register_handler(KIND)(killed)
    waiting = received(branch)
    with pytest.raises(SystemExit):
        worked()
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempted, waiting.claimed) == ("waiting", 0, 1)
    assert not Source.objects.filter(name=waiting.event_id).exists()


def test_an_event_that_kills_workers_is_given_up(branch: Source) -> None:
    waiting = received(branch)
    claims = []
    for _ in range(MAX_LOST_WORKERS + 2):
        claims.append(len(claim_due(10)))
        time_passes()
    assert claims == [1] * MAX_LOST_WORKERS + [0, 0]
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempted, waiting.next_at, waiting.lease) == ("dead", 0, None, None)
    assert waiting.error.startswith("Poison")


def in_a_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """With a connection of its own, which ends with it."""

    def run() -> Any:
        try:
            return call()
        finally:
            connections.close_all()

    return run


def test_workers_share_what_waits(transactional_db: None) -> None:
    taken: list[str] = []
    register_handler(KIND)(lambda *given: taken.append(given[0].event_id))
    branch = source()
    events = [received(branch).event_id for _ in range(60)]

    def work() -> None:
        while worked(limit=7):
            pass

    with ThreadPoolExecutor(4) as pool:
        for run in [pool.submit(in_a_thread(work)) for _ in range(4)]:
            run.result()
    assert sorted(taken) == sorted(events)
    assert set(Received.objects.values_list("state", "attempted", "claimed")) == {("done", 1, 1)}


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers follow one another anyway")
def test_a_slow_worker_keeps_what_it_has_begun(transactional_db: None) -> None:
    begun, goes_on = Event(), Event()

    def slow(received: Received, body: dict[str, Any], now: datetime) -> None:
        begun.set()
        assert goes_on.wait(60)

    register_handler(KIND)(slow)
    received(source())
    [ours] = claim_due(10)
    time_passes()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(in_a_thread(lambda: process_event(ours, MIDDLE)))
        assert begun.wait(60)
        assert claim_due(10) == []
        goes_on.set()
        run.result()
    assert Received.objects.get().state == "done"
