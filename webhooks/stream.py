"""The stream of events, for clients that pull them.

Readers miss no event: events are in the order of their transactions, and appear when all transactions before theirs
have ended.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan

from library_site.api.cursors import Cursor
from library_site.db.sql import fetch_all
from library_site.http.refusals import Refusal
from webhooks.models import EVENT_RETENTION, Event, Restoration

MAX_CURSOR_LENGTH = 200
# A reader that starts at the oldest event has this time to read on; rows are stored for longer.
READING_GRACE = timedelta(hours=12)
LATER_EVENTS_SQL = (
    "SELECT EXISTS (SELECT FROM webhooks_event"
    " WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
)
CursorInteger = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
CursorTime = Annotated[datetime, msgspec.Meta(tz=True)]


class CursorTooOld(Refusal):
    """The events after the cursor are no longer stored, or the cursor is older than the last restored backup."""

    status = 410
    message = "The cursor is older than the events that are kept: begin anew without it"


class StreamCursor(Cursor):
    """The place after an event of the stream, and the time when a reader was there."""

    transaction: CursorInteger
    id: CursorInteger
    read_at: CursorTime


class Page(NamedTuple):
    """The bodies of events. `end` is where to read on, `has_more` whether more events follow already."""

    bodies: Sequence[bytes]
    end: StreamCursor
    has_more: bool


def read_page(after: StreamCursor | None, kinds: Collection[str], limit: int, now: datetime) -> Page:
    """Events of these kinds after a cursor, or the oldest in the stream. Raises CursorTooOld."""
    if after and after.read_at < max([now - EVENT_RETENTION - READING_GRACE, *list_restorations()]):
        raise CursorTooOld
    events = settled_events().filter(after_condition(after) if after else Q(created_at__gte=now - EVENT_RETENTION))
    # One more row shows whether there is another page.
    page = events.filter(kind__in=kinds).order_by("transaction", "id")[: limit + 1]
    rows = list(page.values_list("body", "transaction", "id", "created_at"))
    bodies = [bytes(body) for body, *_ in rows[:limit]]
    if len(rows) > limit:
        return Page(bodies, StreamCursor(*rows[limit - 1][1:]), has_more=True)
    return Page(bodies, last_position(events, after, now), has_more=False)


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
        # SQLite does not use an index for a comparison of two columns.
        return Q(transaction=0, id__gt=after.id)
    return Q(TupleGreaterThan(Tuple(F("transaction"), F("id")), (after.transaction, after.id)))


def last_position(events: QuerySet[Event], after: StreamCursor | None, now: datetime) -> StreamCursor:
    """The place after the last event of any kind, so that the next page does not search the same events again."""
    last_event = events.order_by("-transaction", "-id").values_list("transaction", "id").first()
    start = (after.transaction, after.id) if after else (0, 0)
    return StreamCursor(*(last_event or start), now)
