"""The stream of events, for clients that pull them.

Clients miss no event: events have the order of their transactions, and an event appears when all earlier transactions
have ended.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet

from library_site.api.cursors import Cursor
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Start, build_condition, cut_page
from library_site.db.sql import fetch_all
from library_site.http.api_errors import APIError
from webhooks.models import EVENT_RETENTION, Event, Restoration

# A client that starts at the oldest event has this time to read the next page. Rows are stored for longer.
READING_GRACE = timedelta(hours=12)
LATER_EVENTS_SQL = (
    "SELECT EXISTS (SELECT FROM webhooks_event"
    " WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
)
Number = Annotated[int, msgspec.Meta(ge=0, le=BIGINT_MAX)]


class CursorTooOld(APIError):
    """The events after the cursor are no longer stored, or the cursor is older than the last restored backup."""

    status = 410
    message = "The cursor is older than the events that are kept: begin anew without it"


class StreamCursor(Cursor):
    """The position after an event of the stream, and the time when the client read that far."""

    transaction: Number
    id: Number
    read_at: Annotated[datetime, msgspec.Meta(tz=True)]


class EventPage(NamedTuple):
    """The bodies of events. The next page begins at `end`; `has_more` tells whether it has events now."""

    bodies: Sequence[bytes]
    end: StreamCursor
    has_more: bool


def read_event_page(after: StreamCursor | None, kinds: Collection[str], limit: int, now: datetime) -> EventPage:
    """Reads events of these kinds after a cursor, or from the oldest one in the stream. Raises CursorTooOld."""
    restorations = Restoration.objects.values_list("restored_at", flat=True)
    if after and after.read_at < max([now - EVENT_RETENTION - READING_GRACE, *restorations]):
        raise CursorTooOld
    events = settled_events().filter(after_condition(after) if after else Q(created_at__gte=now - EVENT_RETENTION))
    # The body, and the fields of a StreamCursor.
    rows = events.order_by("transaction", "id").values_list("body", "transaction", "id", "created_at")
    page = cut_page(list(rows.filter(kind__in=kinds)[: limit + 1]), limit, Start(), lambda row: row[1:])
    end = StreamCursor(*page.next_key) if page.next_key else last_position(events, after, now)
    return EventPage([bytes(body) for body, *_ in page.rows], end, has_more=bool(page.next_key))


def restart_stream(now: datetime) -> None:
    """Starts the stream again after a backup was restored.

    A new PostgreSQL counts its transactions from the beginning. So the stored events get transaction 0: they come
    before all new events, in the order of their ids. Older cursors would skip events, so they are rejected.
    """
    with transaction.atomic():
        Event.objects.exclude(transaction=0).update(transaction=0)
        Restoration.objects.create(restored_at=now)


def is_from_elsewhere() -> bool:
    """Tells whether events have transaction ids that are higher than any of this PostgreSQL: they come from a dump."""
    if connection.vendor == "sqlite":
        return False
    # One statement has one snapshot, so events that are written at the same time do not count.
    [(is_later,)] = fetch_all(LATER_EVENTS_SQL)
    return bool(is_later)


def settled_events() -> QuerySet[Event]:
    """Returns the events before which no other event can appear. The queryset gives the same events each time."""
    if connection.vendor == "sqlite":
        # SQLite has one writer at a time.
        return Event.objects.filter(id__lte=Event.objects.aggregate(last=Max("id", default=0))["last"])
    [(oldest_running,)] = fetch_all("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return Event.objects.filter(transaction__lt=int(oldest_running))


def after_condition(after: StreamCursor) -> Q:
    if connection.vendor == "sqlite":
        # All events have transaction 0. With this equality the index begins at the id; a range would scan all events.
        return Q(transaction=0) & build_condition([F("id")], (after.id,), descending=False)
    return build_condition([F("transaction"), F("id")], (after.transaction, after.id), descending=False)


def last_position(events: QuerySet[Event], after: StreamCursor | None, now: datetime) -> StreamCursor:
    """Returns the position after the last event of any kind, so that the next page does not scan these events again."""
    last_event = events.order_by("-transaction", "-id").values_list("transaction", "id").first()
    start = (after.transaction, after.id) if after else (0, 0)
    return StreamCursor(*(last_event or start), now)
