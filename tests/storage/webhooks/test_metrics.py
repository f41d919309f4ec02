"""What metrics say of deliveries is what the tables have. Lists find the few that wait or are dead by an index."""

from datetime import timedelta
from random import random

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from tests.support.endpoints import claim_deliveries, create_endpoint, create_owner, publish_event
from tests.support.metrics import read_samples
from tests.support.sources import create_source
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.metrics import MAX_NAMED_ENDPOINTS, read_deliveries
from webhooks.models import Attempt, Delivery, DeliveryCount, Event, Received

pytestmark = pytest.mark.usefixtures("db")


def test_without_deliveries_all_is_zero() -> None:
    assert set(read_samples(read_deliveries()).values()) == {0}
    assert len(read_samples(read_deliveries())) == 5


def test_attempts_are_counted_by_their_result() -> None:
    endpoint = create_endpoint()
    for number in range(6):
        publish_event(number)
    Delivery.objects.update(created_at=Now() - timedelta(seconds=90), next_at=Now() - timedelta(seconds=30))
    assert 29 < read_samples(read_deliveries())["deliveries_overdue_seconds",] < 80
    sent, sent_too, failed, dead, late, *_ = claim_deliveries()
    dead = dead._replace(attempted=4)
    results = [(sent, 200), (sent_too, 204), (failed, 500), (dead, 410)]
    record_results([AttemptResult(delivery, timezone.now(), 5, status) for delivery, status in results], random)
    # Another worker has it now.
    Delivery.objects.filter(pk=late.pk).update(lease=None)
    record_results([AttemptResult(late, timezone.now(), 5, 200)], random)
    samples = read_samples(read_deliveries())
    assert 89 < samples.pop(("deliveries_oldest_seconds", str(endpoint.pk))) < 150
    assert samples == {
        ("deliveries_overdue_seconds",): 0,
        ("deliveries_waiting",): 3,
        ("deliveries_total", "sent"): 2,
        ("deliveries_total", "failed"): 1,
        ("deliveries_total", "dead"): 1,
    }
    assert Delivery.objects.filter(state="delivered").count() == samples["deliveries_total", "sent"]
    assert Attempt.objects.count() == 4


def test_the_endpoints_that_take_nothing_are_named() -> None:
    owner = create_owner()
    pks = [create_endpoint(owner).pk for _ in range(MAX_NAMED_ENDPOINTS + 2)]
    publish_event()
    for age, pk in enumerate(pks):
        Delivery.objects.filter(endpoint=pk).update(created_at=Now() - timedelta(minutes=age), attempted=1)
    samples = read_samples(read_deliveries())
    ages = {int(labels[0]): age for (name, *labels), age in samples.items() if name == "deliveries_oldest_seconds"}
    assert ages.keys() == {*pks[2:]}
    assert all(60 * pks.index(pk) - 1 < age < 60 * pks.index(pk) + 50 for pk, age in ages.items())


def test_what_a_receiver_delays_is_not_overdue() -> None:
    create_endpoint(in_flight_limit=1)
    for number in range(2):
        publish_event(number)
    Delivery.objects.update(next_at=Now() - timedelta(seconds=300))
    assert read_samples(read_deliveries())["deliveries_overdue_seconds",] > 299
    [delivery] = claim_deliveries()
    assert read_samples(read_deliveries())["deliveries_overdue_seconds",] == 0
    # The worker died, and no other one took over.
    Delivery.objects.filter(pk=delivery.pk).update(next_at=Now() - timedelta(seconds=1))
    assert read_samples(read_deliveries())["deliveries_overdue_seconds",] > 299


def test_counts_stay_when_deliveries_are_deleted() -> None:
    DeliveryCount.objects.bulk_create([DeliveryCount(shard=shard, sent=5, failed=2, dead=1) for shard in (14, 15)])
    Event.objects.all().delete()
    assert read_samples(read_deliveries())["deliveries_total", "sent"] == 10


# Lists


ROWS = 1_000


def fill_lists() -> dict[str, QuerySet[Delivery] | QuerySet[Received]]:
    """Adds finished rows. Returns the newest rows by the names of the models."""
    endpoint, source = create_endpoint(), create_source()
    publish_event()
    event = Event.objects.get()
    finished = {"next_at": None, "attempted": 1}
    Delivery.objects.bulk_create(
        Delivery(event=event, endpoint=endpoint, replay=number, state="delivered", **finished)
        for number in range(1, ROWS)
    )
    Received.objects.bulk_create(
        Received(source=source, event_id=str(number), kind="shelf.moved", body=b"{}", state="done", **finished)
        for number in range(ROWS)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE webhooks_delivery, webhooks_received")
    return {"delivery": Delivery.objects.order_by("-pk"), "received": Received.objects.order_by("-pk")}


def test_rows_that_wait_or_are_dead_are_found_by_an_index() -> None:
    for name, rows in fill_lists().items():
        for state in ("waiting", "dead"):
            index = f"{name}_is_{state}"
            assert index in rows.filter(state=state)[:50].explain(), index
