"""The stream of events, for clients that pull them.

Readers miss no event: events are in the order of their transactions, and appear when all transactions before theirs
have ended.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

import msgspec
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet

from library_site.api.cursors import Cursor
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Key, Start, build_condition, cut_page
from library_site.db.sql import fetch_all
from library_site.http.api_errors import APIError
from webhooks.models import EVENT_RETENTION, Event, Restoration

# A reader that starts at the oldest event has this time to read on; rows are stored for longer.
READING_GRACE = timedelta(hours=12)
# Of a page: the body, and the fields of a StreamCursor.
ROW_COLUMNS = ("body", "transaction", "id", "created_at")
LATER_EVENTS_SQL = (
    "SELECT EXISTS (SELECT FROM webhooks_event"
    " WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
)
Number = Annotated[int, msgspec.Meta(ge=0, le=BIGINT_MAX)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class CursorTooOld(APIError):
    """The events after the cursor are no longer stored, or the cursor is older than the last restored backup."""

    status = 410
    message = "The cursor is older than the events that are kept: begin anew without it"


class StreamCursor(Cursor):
    """The place after an event of the stream, and the time when a reader was there."""

    transaction: Number
    id: Number
    read_at: Moment


class EventPage(NamedTuple):
    """The bodies of events. `end` is where to read on, `has_more` whether more events follow already."""

    bodies: Sequence[bytes]
    end: StreamCursor
    has_more: bool


def read_page(after: StreamCursor | None, kinds: Collection[str], limit: int, now: datetime) -> EventPage:
    """Events of these kinds after a cursor, or the oldest in the stream. Raises CursorTooOld."""
    if after and after.read_at < max([now - EVENT_RETENTION - READING_GRACE, *list_restorations()]):
        raise CursorTooOld
    events = settled_events().filter(after_condition(after) if after else Q(created_at__gte=now - EVENT_RETENTION))
    rows = events.filter(kind__in=kinds).order_by("transaction", "id").values_list(*ROW_COLUMNS)[: limit + 1]
    page = cut_page(list(rows), limit, Start(), get_row_key)
    end = StreamCursor(*page.next_key) if page.next_key else last_position(events, after, now)
    return EventPage([bytes(body) for body, *_ in page.rows], end, has_more=bool(page.next_key))


def get_row_key(row: tuple[Any, ...]) -> Key:
    return row[1:]


def list_restorations() -> list[datetime]:
    return list(Restoration.objects.values_list("restored_at", flat=True))


def restart_stream(now: datetime) -> None:
    """Begins the stream anew after a backup was restored, which may be in another PostgreSQL.

    There transactions are counted from the beginning: the stored events come before all new ones, in the order of their
    ids. Cursors from before now would skip events, so they are refused.
    """
    with transaction.atomic():
        Event.objects.exclude(transaction=0).update(transaction=0)
        Restoration.objects.create(restored_at=now)


def is_from_elsewhere() -> bool:
    """Whether there are events of transactions that this PostgreSQL has not had yet: they come from a dump."""
    if connection.vendor == "sqlite":
        return False
    # One statement has one snapshot: others write events meanwhile.
    [(is_later,)] = fetch_all(LATER_EVENTS_SQL)
    return bool(is_later)


def settled_events() -> QuerySet[Event]:
    """Events before which no event can appear any more. Evaluating the queryset again gives the same events."""
    if connection.vendor == "sqlite":
        # SQLite has one writer at a time.
        return Event.objects.filter(id__lte=Event.objects.aggregate(last=Max("id", default=0))["last"])
    [(oldest_running,)] = fetch_all("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return Event.objects.filter(transaction__lt=int(oldest_running))


def after_condition(after: StreamCursor) -> Q:
    if connection.vendor == "sqlite":
        # All events have the same transaction, and a range of the index that begins with it would be all of them.
        return Q(transaction=0) & build_condition([F("id")], (after.id,), descending=False)
    return build_condition([F("transaction"), F("id")], (after.transaction, after.id), descending=False)


def last_position(events: QuerySet[Event], after: StreamCursor | None, now: datetime) -> StreamCursor:
    """The place after the last event of any kind, so that the next page does not search the same events again."""
    last_event = events.order_by("-transaction", "-id").values_list("transaction", "id").first()
    start = (after.transaction, after.id) if after else (0, 0)
    return StreamCursor(*(last_event or start), now)
