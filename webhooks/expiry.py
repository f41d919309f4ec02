"""Deletes expired rows once a day, by one worker at a time. Those of webhooks are old events with their deliveries,
deliveries never sent, and endpoints without an owner.
"""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from threading import Event as ThreadEvent
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from library_site.jobs.expiry import delete_expired
from library_site.jobs.leases import select_due
from webhooks.models import EVENT_RETENTION, Attempt, Clearing, Delivery, Endpoint, Event, Received

log = logging.getLogger(__name__)

EXPIRY_INTERVAL = timedelta(days=1)
# After this time another worker can take the lease. Two workers at a time do no harm.
EXPIRY_LEASE_TIME = timedelta(hours=1)


def delete_expired_if_due(stop: ThreadEvent) -> None:
    """Deletes expired rows unless a worker did so in the last EXPIRY_INTERVAL, or another one holds the lease.

    If the worker stops before the end, another one can continue at once.
    """
    if not lease_expiry():
        return
    counts = delete_expired(timezone.now(), stop)
    if stop.is_set():
        # One second in the past, so that another worker finds it due at once.
        schedule_expiry(-timedelta(seconds=1))
        return
    schedule_expiry(EXPIRY_INTERVAL)
    log.info("Cleared: %s", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing")


def lease_expiry() -> bool:
    """Leases the deletion for EXPIRY_LEASE_TIME. Returns false if it is not due or another worker has the lease."""
    if Clearing.objects.filter(next_at__gt=Now()).exists():
        return False
    Clearing.objects.get_or_create(pk=1)
    return bool(select_due(Clearing).update(next_at=Now() + EXPIRY_LEASE_TIME))


def schedule_expiry(delay: timedelta) -> None:
    Clearing.objects.update(next_at=Now() + delay)


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields names and rows. Rows come before the rows that they refer to."""
    # One day more: an event appears in the stream after its transaction ends, which may be long after `created_at`.
    cutoff = now - EVENT_RETENTION - timedelta(days=1)
    # They are never sent, but they count towards their owner's WEBHOOKS_MAX_WAITING.
    unsent = Delivery.objects.filter(endpoint__state=Endpoint.State.DELETED, next_at__isnull=False)
    yield "deliveries to deleted endpoints", unsent
    # Nobody can see them: the user that owned them was deleted.
    ownerless = Endpoint.objects.filter(state=Endpoint.State.DELETED, owner=None)
    yield "attempts", Attempt.objects.filter(delivery__endpoint__in=ownerless)
    yield "attempts", Attempt.objects.filter(delivery__event__created_at__lte=cutoff)
    yield "deliveries", Delivery.objects.filter(endpoint__in=ownerless)
    yield "deliveries", Delivery.objects.filter(event__created_at__lte=cutoff)
    yield "events", Event.objects.filter(created_at__lte=cutoff)
    yield "received events", Received.objects.filter(finished_at__lte=cutoff)
    # A recent endpoint may get its first delivery from a transaction that has not committed yet.
    unused_endpoints = Endpoint.objects.filter(deliveries=None, created_at__lte=cutoff)
    yield "endpoints", unused_endpoints.filter(Q(state=Endpoint.State.DELETED) | Q(owner=None))
