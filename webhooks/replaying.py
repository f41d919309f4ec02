"""Sending again what was sent before, or what somebody missed."""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection
from django.db.models import Max

from webhooks.models import KEPT_FOR, Delivery, Endpoint, Event
from webhooks.outbox import wake_workers
from webhooks.registry import ALL, KINDS

# Of one replay: on SQLite nobody else writes meanwhile.
MOST = 50_000
NO_SPAN = "It ends before it begins."


class TooManyEvents(Exception):
    """More than MOST of them."""


def redeliver(delivery: Delivery) -> Delivery:
    """The same event for the same endpoint once more. Needs a transaction."""
    lock(delivery.endpoint_id)
    same = Delivery.objects.filter(event=delivery.event_id, endpoint=delivery.endpoint_id)
    number = same.aggregate(last=Max("replay"))["last"] + 1
    wake_workers()
    return Delivery.objects.create(event_id=delivery.event_id, endpoint_id=delivery.endpoint_id, replay=number)


def replay(endpoint: Endpoint, kinds: str, after: datetime, before: datetime | None, now: datetime) -> int:
    """All events of a span of time, `before` itself left out, as far back as they are kept; tells how many.

    `kinds` are as in Endpoint; ALL means those that the endpoint takes. Needs a transaction.
    Raises TooManyEvents.
    """
    lock(endpoint.pk)
    events = Event.objects.filter(kind__in=named(kinds, endpoint), created_at__gte=max(after, now - KEPT_FOR))
    if before:
        events = events.filter(created_at__lt=before)
    if events[MOST:].exists():
        raise TooManyEvents
    selected, parameters = events.values("id").query.sql_with_params()
    wake_workers()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO webhooks_delivery (event_id, endpoint_id, replay)"  # noqa: S608  # by Django
            " SELECT event.id, %s, (SELECT COALESCE(MAX(replay) + 1, 0) FROM webhooks_delivery"
            " WHERE event_id = event.id AND endpoint_id = %s)"
            f" FROM ({selected}) AS event ORDER BY event.id",
            [endpoint.pk, endpoint.pk, *parameters],
        )
        return int(cursor.rowcount)


def named(kinds: str, endpoint: Endpoint) -> Sequence[str]:
    wanted = endpoint.kinds if kinds == ALL else kinds
    return list(KINDS) if wanted == ALL else wanted.split()


def lock(endpoint_id: int) -> None:
    """Two replays at once would give their deliveries the same number. Deliveries of new events need not wait."""
    Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint_id)
