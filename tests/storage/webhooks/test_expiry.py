"""How long events, deliveries and deleted endpoints are kept."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from library_site.jobs.expiry import delete_by_kind
from tests.support.endpoints import claim_deliveries, create_endpoint, create_owner, publish_event
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.expiry import iter_expired
from webhooks.models import EVENT_RETENTION, Attempt, Delivery, Endpoint, Event, Received, Source

pytestmark = pytest.mark.usefixtures("db")
NOW = timezone.now()
LONG_AGO = NOW - EVENT_RETENTION - timedelta(days=1)
UNSENT = "deliveries to deleted endpoints"
NOTHING = {UNSENT: 0, "attempts": 0, "deliveries": 0, "events": 0, "received events": 0, "endpoints": 0}


def record_deliveries(now: datetime) -> None:
    record_results([AttemptResult(leased, now, 5, 200) for leased in claim_deliveries(10)], lambda: 0.5)


def test_events_are_kept_for_a_month() -> None:
    create_endpoint()
    publish_event()
    record_deliveries(NOW)
    publish_event()
    assert delete_by_kind(iter_expired(NOW)) == NOTHING
    Event.objects.filter(deliveries__state="delivered").update(created_at=LONG_AGO)
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "attempts": 1, "deliveries": 1, "events": 1}
    assert Delivery.objects.values_list("state", flat=True).get() == "waiting"


@pytest.mark.parametrize(("age", "count"), [(timedelta(days=30, hours=23), 1), (timedelta(days=31), 0)])
def test_events_can_be_replayed_for_thirty_days(age: timedelta, count: int) -> None:
    create_endpoint()
    publish_event()
    record_deliveries(NOW)
    Event.objects.update(created_at=NOW - age)
    source = Source.objects.create(name="other", created_at=NOW)
    Received.objects.create(source=source, event_id="1", kind="x", body=b"{}", finished_at=NOW - age)
    delete_by_kind(iter_expired(NOW))
    kept = [model.objects.count() for model in (Event, Delivery, Attempt, Received)]
    assert kept == [count] * 4


def test_received_events_are_kept_for_a_month_after_they_are_done() -> None:
    source = Source.objects.create(name="other", created_at=NOW)
    for number, finished_at in enumerate([None, NOW, LONG_AGO]):
        Received.objects.create(source=source, event_id=str(number), kind="x", body=b"{}", finished_at=finished_at)
    assert delete_by_kind(iter_expired(NOW + timedelta(seconds=1))) == {**NOTHING, "received events": 1}


def test_a_deleted_endpoint_is_deleted_after_the_last_of_its_deliveries() -> None:
    owner = create_owner()
    create_endpoint(owner)
    create_endpoint(owner)
    publish_event()
    record_deliveries(NOW)
    Endpoint.objects.update(state="deleted")
    assert delete_by_kind(iter_expired(NOW)) == NOTHING
    Event.objects.update(created_at=LONG_AGO)
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "attempts": 2, "deliveries": 2, "events": 1}
    Endpoint.objects.update(created_at=LONG_AGO)
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "endpoints": 2}


@pytest.mark.parametrize(
    ("owner", "state", "is_deleted"),
    [("listener", "active", False), ("listener", "deleted", True), (None, "active", True), (None, "deleted", True)],
)
def test_an_endpoint_that_was_never_used_is_deleted_once_nobody_can_use_it(
    owner: str | None, state: str, is_deleted: bool
) -> None:
    user = create_owner(owner) if owner else None
    endpoint = Endpoint.objects.create(owner=user, url="https://receiver.example", state=state, created_at=NOW)
    assert delete_by_kind(iter_expired(NOW)) == NOTHING
    Endpoint.objects.update(created_at=LONG_AGO)
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "endpoints": int(is_deleted)}
    assert Endpoint.objects.filter(pk=endpoint.pk).exists() is not is_deleted


def test_what_was_sent_to_an_endpoint_without_owner_is_deleted_when_it_is_deleted() -> None:
    """Operators see the others in the admin, and can give them an owner."""
    create_endpoint()
    publish_event()
    record_deliveries(NOW)
    for state, count in (("active", 0), ("disabled", 0), ("deleted", 1)):
        Endpoint.objects.update(owner=None, state=state)
        assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "attempts": count, "deliveries": count}


def test_what_waits_for_a_deleted_endpoint_is_deleted_at_once() -> None:
    owner = create_owner()
    deleted, disabled = create_endpoint(owner), create_endpoint(owner)
    publish_event()
    record_results([AttemptResult(leased, NOW, 5, 500) for leased in claim_deliveries(10)], lambda: 0.5)
    Endpoint.objects.filter(pk=deleted.pk).update(state="deleted")
    Endpoint.objects.filter(pk=disabled.pk).update(state="disabled")
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, UNSENT: 1}
    assert Delivery.objects.get().endpoint == disabled
