"""Expired rows are deleted once a day, by one of the workers."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from tests.support.concurrency import run_and_disconnect
from webhooks.expiry_schedule import EXPIRY_INTERVAL, EXPIRY_LEASE_TIME, delete_expired_if_due, lease_expiry
from webhooks.models import Clearing

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


@pytest.mark.django_db
def test_expired_rows_are_deleted_once_a_day() -> None:
    for time, expected in ((timedelta(), []), (EXPIRY_INTERVAL - MINUTE, ["expired"]), (MINUTE, [])):
        create_sessions()
        if time:
            pass_time(time)
        delete_expired_if_due(lambda: False)
        assert list_sessions() == [*expected, "valid"]
        Session.objects.all().delete()


@pytest.mark.django_db
def test_a_stopped_worker_leaves_the_rest_to_the_next() -> None:
    create_sessions()
    delete_expired_if_due(lambda: True)
    assert list_sessions() == ["expired", "valid"]
    delete_expired_if_due(lambda: False)
    assert list_sessions() == ["valid"]


@pytest.mark.django_db
def test_a_worker_that_died_is_replaced() -> None:
    assert [lease_expiry(), lease_expiry()] == [True, False]
    pass_time(EXPIRY_LEASE_TIME + MINUTE)
    assert lease_expiry()


@pytest.mark.django_db(transaction=True)
def test_one_of_many_workers_clears() -> None:
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda _: run_and_disconnect(lease_expiry), range(8)))
    assert sorted(leases) == [False] * 7 + [True]
