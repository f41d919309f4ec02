"""What was sent, or missed, is sent again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

import pytest
from django.db import connection, transaction
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from tests.support.endpoints import endpoint
from webhooks.endpoints import redeliver, replay_events
from webhooks.models import Delivery, Endpoint, Event
from webhooks.outbox import EventData, create_ping, publish

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def happened(kind: str, at: datetime = NOW) -> Event:
    with transaction.atomic():
        publish([EventData(kind, None, {})], at)
    return Event.objects.latest("pk")


def replays(listening: Endpoint) -> list[tuple[str, int]]:
    """Kind and number of each delivery there, in their order."""
    deliveries = Delivery.objects.filter(endpoint=listening).order_by("pk")
    return [(delivery.event.kind, delivery.replay) for delivery in deliveries]


@pytest.mark.parametrize(
    ("takes", "asked_for", "sent"),
    [
        ("*", "*", ["book.created", "book.updated", "book.deleted"]),
        ("*", "book.deleted", ["book.deleted"]),
        ("book.created book.updated", "*", ["book.created", "book.updated"]),
        ("book.created", "book.updated book.deleted", ["book.updated", "book.deleted"]),
    ],
)
def test_a_replay_sends_the_kinds_that_are_asked_for(db: None, takes: str, asked_for: str, sent: list[str]) -> None:
    for kind in ("book.created", "book.updated", "book.deleted"):
        happened(kind)
    listening = endpoint(kinds=takes)
    assert replay_events(listening, asked_for, LONG_AGO, None, NOW) == len(sent)
    assert replays(listening) == [(kind, 0) for kind in sent]


def test_a_replay_begins_at_one_time_and_ends_before_another(db: None) -> None:
    events = [happened("book.created", NOW + timedelta(minutes=minute)) for minute in range(4)]
    listening = endpoint()
    assert replay_events(listening, "*", events[1].created_at, events[3].created_at, NOW) == 2
    assert [delivery.event for delivery in Delivery.objects.order_by("pk")] == events[1:3]


def test_a_replay_goes_back_thirty_days(db: None) -> None:
    happened("book.created", NOW - timedelta(days=31))
    recent = happened("book.created", NOW - timedelta(days=29))
    assert replay_events(endpoint(), "*", LONG_AGO, None, NOW) == 1
    assert Delivery.objects.get().event == recent


def test_what_was_sent_is_sent_once_more(db: None) -> None:
    listening = endpoint()
    happened("book.created")
    replay_events(listening, "*", LONG_AGO, None, NOW)
    happened("book.deleted")
    replay_events(listening, "*", LONG_AGO, None, NOW)
    assert replays(listening) == [
        ("book.created", 0),
        ("book.created", 1),
        ("book.deleted", 0),
        ("book.created", 2),
        ("book.deleted", 1),
    ]


def test_pings_are_not_replayed(db: None) -> None:
    listening = endpoint()
    create_ping(listening, NOW)
    assert replay_events(listening, "*", LONG_AGO, None, NOW) == 0


def test_others_are_sent_nothing(db: None) -> None:
    listening = endpoint()
    other = endpoint(listening.owner, kinds="book.deleted")
    happened("book.created")
    replay_events(listening, "*", LONG_AGO, None, NOW)
    assert replays(other) == []


def test_a_replay_costs_the_same_however_much_there_is(
    db: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with transaction.atomic():
        publish([EventData("book.created", None, {}) for _ in range(600)], NOW)
    listening = endpoint()
    with django_assert_num_queries(3):
        assert replay_events(listening, "*", LONG_AGO, None, NOW) == 600


def test_workers_are_told_of_a_replay_once(
    db: None, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    listening = endpoint()
    happened("book.created")
    with django_capture_on_commit_callbacks() as hints:
        replay_events(listening, "*", LONG_AGO, None, NOW)
    assert len(hints) == 1


def test_of_many_who_send_again_at_once_each_does(transactional_db: None) -> None:
    listening = endpoint()
    happened("book.created")
    first = Delivery.objects.get()
    gate = Barrier(8, timeout=60)

    def again(number: int) -> None:
        gate.wait()
        with transaction.atomic():
            if number % 2:
                redeliver(first)
            else:
                replay_events(listening, "*", LONG_AGO, None, NOW)
        connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(again, range(8)))
    assert replays(listening) == [("book.created", number) for number in range(9)]
