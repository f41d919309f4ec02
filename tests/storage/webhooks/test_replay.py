"""Past events are delivered again, by a replay of an endpoint or the redelivery of one delivery."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier

from django.db import connection, transaction
from pytest_django import DjangoAssertNumQueries

from tests.support.endpoints import create_endpoint, create_owner
from webhooks.endpoints import redeliver, replay_events
from webhooks.models import Delivery, Endpoint, Event
from webhooks.outbox import EventData, create_ping, publish

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def publish_event(kind: str, now: datetime = NOW) -> Event:
    with transaction.atomic():
        publish([EventData(kind, None, {})], now)
    return Event.objects.latest("pk")


def list_replays(endpoint: Endpoint) -> list[tuple[str, int]]:
    """Kind and replay number of each delivery to the endpoint, oldest first."""
    deliveries = Delivery.objects.filter(endpoint=endpoint).order_by("pk")
    return [(delivery.event.kind, delivery.replay) for delivery in deliveries]


def test_a_replay_sends_the_selected_kinds(db: None) -> None:
    created, updated, deleted = "book.created", "book.updated", "book.deleted"
    for kind in (created, updated, deleted):
        publish_event(kind)
    other = create_endpoint()
    # Pings are not replayed.
    create_ping(other, NOW)
    for subscription, kinds, expected in (
        ("*", "*", [created, updated, deleted]),
        (f"{created} {updated}", "*", [created, updated]),
        (created, f"{updated} {deleted}", [updated, deleted]),
    ):
        endpoint = create_endpoint(other.owner, kinds=subscription)
        assert replay_events(endpoint, kinds, LONG_AGO, None, NOW) == len(expected)
        assert list_replays(endpoint) == [(kind, 0) for kind in expected], (subscription, kinds)
    assert list_replays(other) == [("test.ping", 0)]


def test_a_replay_begins_at_one_time_and_ends_before_another(db: None) -> None:
    events = [publish_event("book.created", NOW + timedelta(minutes=minute)) for minute in range(4)]
    publish_event("book.created", NOW - timedelta(days=31))
    recent = publish_event("book.created", NOW - timedelta(days=29))
    endpoint, other = create_endpoint(), create_endpoint(create_owner("other"))
    assert replay_events(endpoint, "*", events[1].created_at, events[3].created_at, NOW) == 2
    assert [delivery.event for delivery in endpoint.deliveries.order_by("pk")] == events[1:3]
    # It goes back thirty days.
    assert replay_events(other, "*", LONG_AGO, NOW, NOW) == 1
    assert other.deliveries.get().event == recent


def test_a_second_replay_sends_the_same_events_again(db: None) -> None:
    endpoint = create_endpoint()
    publish_event("book.created")
    for kinds, count in (("book.updated", 0), ("*", 1)):
        assert replay_events(endpoint, kinds, LONG_AGO, None, NOW) == count
    publish_event("book.deleted")
    replay_events(endpoint, "*", LONG_AGO, None, NOW)
    created = [("book.created", 0), ("book.created", 1)]
    assert list_replays(endpoint) == [*created, ("book.deleted", 0), ("book.created", 2), ("book.deleted", 1)]


def test_a_replay_takes_the_same_number_of_queries_for_any_number_of_events(
    db: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with transaction.atomic():
        publish([EventData("book.created", None, {}) for _ in range(30)], NOW)
    endpoint = create_endpoint()
    with django_assert_num_queries(5):
        assert replay_events(endpoint, "*", LONG_AGO, None, NOW) == 30


def test_redeliveries_and_replays_at_the_same_time_all_succeed(transactional_db: None) -> None:
    endpoint = create_endpoint()
    publish_event("book.created")
    delivery = Delivery.objects.get()
    barrier = Barrier(8, timeout=60)

    def send_again(number: int) -> None:
        barrier.wait()
        with transaction.atomic():
            if number % 2:
                redeliver([delivery])
            else:
                replay_events(endpoint, "*", LONG_AGO, None, NOW)
        connection.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send_again, range(8)))
    assert list_replays(endpoint) == [("book.created", number) for number in range(9)]
