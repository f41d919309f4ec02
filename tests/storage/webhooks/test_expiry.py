"""How long events, deliveries and deleted endpoints are kept. One of the workers deletes expired rows once a day."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from library_site.jobs.expiry import delete_by_kind
from tests.support.concurrency import run_and_disconnect
from tests.support.endpoints import claim_deliveries, create_endpoint, create_owner, publish_event
from webhooks.delivery.attempts import AttemptResult, record_results
from webhooks.expiry import EXPIRY_INTERVAL, EXPIRY_LEASE_TIME, delete_expired_if_due, iter_expired, lease_expiry
from webhooks.models import EVENT_RETENTION, Attempt, Clearing, Delivery, Endpoint, Event, Received, Source
from webhooks.worker import end_expired

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


def test_events_can_be_replayed_for_thirty_days() -> None:
    create_endpoint()
    publish_event()
    record_deliveries(NOW)
    source = Source.objects.create(name="other", created_at=NOW)
    for number, finished_at in enumerate([NOW, None]):
        Received.objects.create(source=source, event_id=str(number), kind="x", body=b"{}", finished_at=finished_at)
    for age, count in ((timedelta(days=30, hours=23), 1), (timedelta(days=31), 0)):
        Event.objects.update(created_at=NOW - age)
        Received.objects.filter(event_id="0").update(finished_at=NOW - age)
        delete_by_kind(iter_expired(NOW))
        kept = [model.objects.count() for model in (Event, Delivery, Attempt, Received)]
        # A received event that is not done stays.
        assert kept == [count, count, count, count + 1]


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


def test_an_endpoint_that_was_never_used_is_deleted_once_nobody_can_use_it() -> None:
    owner = create_owner()
    kept, *_ = [
        Endpoint.objects.create(owner=user, url="https://receiver.example", state=state, created_at=NOW)
        for user, state in ((owner, "active"), (owner, "deleted"), (None, "active"), (None, "deleted"))
    ]
    assert delete_by_kind(iter_expired(NOW)) == NOTHING
    Endpoint.objects.update(created_at=LONG_AGO)
    assert delete_by_kind(iter_expired(NOW)) == {**NOTHING, "endpoints": 3}
    assert Endpoint.objects.get() == kept


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


DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def create_sessions() -> None:
    for key, days in (("expired", -1), ("valid", 1)):
        Session.objects.create(session_key=key, session_data="", expire_date=timezone.now() + days * DAY)


def list_sessions() -> list[str]:
    return list(Session.objects.order_by("session_key").values_list("session_key", flat=True))


def pass_time(time: timedelta) -> None:
    clearing = Clearing.objects.get()
    clearing.next_at -= time
    clearing.save()


def test_expired_rows_are_deleted_once_a_day() -> None:
    for time, expected in ((timedelta(), []), (EXPIRY_INTERVAL - MINUTE, ["expired"]), (MINUTE, [])):
        create_sessions()
        if time:
            pass_time(time)
        end_expired(threading.Event())
        assert list_sessions() == [*expected, "valid"]
        Session.objects.all().delete()


def test_a_stopped_worker_leaves_the_rest_to_the_next() -> None:
    create_sessions()
    stop = threading.Event()
    stop.set()
    delete_expired_if_due(stop)
    assert list_sessions() == ["expired", "valid"]
    delete_expired_if_due(threading.Event())
    assert list_sessions() == ["valid"]


def test_a_worker_that_died_is_replaced() -> None:
    assert [lease_expiry(), lease_expiry()] == [True, False]
    pass_time(EXPIRY_LEASE_TIME + MINUTE)
    assert lease_expiry()


@pytest.mark.django_db(transaction=True)
def test_one_of_many_workers_clears() -> None:
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda _: run_and_disconnect(lease_expiry), range(8)))
    assert sorted(leases) == [False] * 7 + [True]
