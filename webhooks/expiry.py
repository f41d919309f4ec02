"""Selects expired rows: old events with their deliveries, deliveries never sent, and endpoints without an owner."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from webhooks.models import EVENT_RETENTION, Attempt, Delivery, Endpoint, Event, Received


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
