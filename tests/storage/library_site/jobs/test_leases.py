"""Rows that one worker at a time has, for which operations stand, and what workers do with a connection that failed."""

from collections.abc import Callable
from functools import partial
from typing import NoReturn
from uuid import uuid4

import pytest
from django.db import InterfaceError, InternalError, OperationalError, connection, transaction
from django.db.models.functions import Now

from books.models import Operation
from books.operations.edits import Edit
from library_site.jobs.leases import (
    LEASE_TIME,
    MAX_LOST_WORKERS,
    LeaseLost,
    claim_due,
    get_leased,
    lock_leased,
    release_row,
    renew_lease,
)
from library_site.jobs.worker import call_reconnecting
from tests.support.operations import begin_edit, create_head_librarian

pytestmark = pytest.mark.django_db


@pytest.fixture
def first() -> Operation:
    """Is due before another operation."""
    actor = create_head_librarian()
    operations = [begin_edit(actor, Edit({"available": False})) for _ in range(2)]
    Operation.objects.filter(pk=operations[0].pk).update(next_at=Now() - LEASE_TIME)
    return operations[0]


def claim(limit: int = 1) -> list[Operation]:
    with transaction.atomic():
        return list(Operation.objects.filter(pk__in=claim_due(Operation, limit).pks).order_by("pk"))


def test_a_lease_that_is_renewed_begins_anew_and_one_that_is_released_is_due_at_once(first: Operation) -> None:
    [leased] = claim()
    Operation.objects.filter(pk=leased.pk).update(next_at=Now())
    renew_lease(leased)
    assert Operation.objects.filter(pk=leased.pk, next_at__gt=Now() + LEASE_TIME / 2).exists()
    release_row(leased)
    assert first in claim(9)


def test_an_attempt_that_ended_has_lost_no_worker(first: Operation) -> None:
    Operation.objects.filter(pk=first.pk).update(claimed=MAX_LOST_WORKERS + 2, attempted=3)
    assert claim() == [first]


def test_who_has_no_lease_neither_reads_nor_changes_the_row(first: Operation) -> None:
    assert first.lease is None
    with pytest.raises(LeaseLost):
        renew_lease(first)
    [leased] = claim()
    for token in (None, uuid4()):
        Operation.objects.filter(pk=leased.pk).update(lease=token)
        before = Operation.objects.values().get(pk=leased.pk)
        release_row(leased)
        calls: list[Callable[[Operation], object]] = [get_leased, renew_lease]
        for call in calls:
            with pytest.raises(LeaseLost):
                call(leased)
        assert not any(map(lock_leased, (first, leased)))
        assert Operation.objects.values().get(pk=leased.pk) == before


@pytest.mark.django_db(transaction=True)
def test_after_a_failure_of_the_connection_the_next_call_has_a_new_one(caplog: pytest.LogCaptureFixture) -> None:
    for error in (InterfaceError(), InternalError(), OperationalError(), ZeroDivisionError()):
        connection.ensure_connection()
        before = connection.connection
        with pytest.raises(type(error)):
            call_reconnecting(partial(fail, error))
        connection.ensure_connection()
        assert (connection.connection is before) == isinstance(error, ZeroDivisionError)
    assert caplog.messages == [
        f"The database did not answer: {name}" for name in ("InterfaceError", "InternalError", "OperationalError")
    ]


def fail(error: Exception) -> NoReturn:
    raise error
