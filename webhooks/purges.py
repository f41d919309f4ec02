"""Deletes events that are past the stream's depth, with all that came of them, and endpoints that nobody has."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from webhooks.models import EVENT_RETENTION, Attempt, Delivery, Endpoint, Event, Received


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Each kind with its rows: what names others before what is named."""
    # A day more: an event is in the stream after its transaction, however long that took.
    past = now - EVENT_RETENTION - timedelta(days=1)
    yield "attempts", Attempt.objects.filter(delivery__event__created_at__lte=past)
    yield "deliveries", Delivery.objects.filter(event__created_at__lte=past)
    yield "events", Event.objects.filter(created_at__lte=past)
    yield "received events", Received.objects.filter(finished_at__lte=past)
    # A young one may be about to get the first, from a transaction that is long.
    unused = Endpoint.objects.filter(deliveries=None, created_at__lte=past)
    yield "endpoints", unused.filter(Q(state=Endpoint.State.DELETED) | Q(owner=None))
