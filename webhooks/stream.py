"""The stream of events, for clients that pull them.

Clients miss no event: events have the order of their transactions, and an event appears when all earlier transactions
have ended.
"""

import base64
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec
from django.db import connection, transaction
from django.db.models import F, Max, QuerySet

from library_site.api.cursors import Cursor
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import ID_ORDER, Order, Start, cut_page
from library_site.db.sql import fetch_all
from library_site.http.api_errors import APIError
from webhooks.models import EVENT_RETENTION, Event, Restoration

# A client that starts at the oldest event has this time to read the next page. Rows are stored for longer.
READING_GRACE = timedelta(hours=12)
LATER_EVENTS_SQL = (
    "SELECT EXISTS (SELECT FROM webhooks_event"
    " WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
)
UP_TO_SQL = {
    "postgresql": "(transaction, id) <= (%s, %s)",
    # All events have transaction 0. With this equality the index ends at the id; a range would scan all events.
    "sqlite": '"transaction" = 0 AND "transaction" <= %s AND id <= %s',
}
IS_KNOWN_SQL = (
    "SELECT NOT EXISTS (SELECT 1 FROM webhooks_restoration WHERE restored_at > %s) AND COALESCE("
    '(SELECT ("transaction", id) = (%s, %s) AND COALESCE(uuid = %s, true) FROM webhooks_event'
    ' WHERE {} ORDER BY "transaction" DESC, id DESC LIMIT 1), true)'
)
STREAM_ORDER = Order(F("transaction"), F("id"))
Number = Annotated[int, msgspec.Meta(ge=0, le=BIGINT_MAX)]


class CursorGone(APIError):
    """The events after the cursor are no longer stored, or the database went back to a state before the cursor."""

    status_code = 410
    default_detail = "The events at the cursor are not kept any more, or were lost: begin anew without it"


# The first three fields of a StreamCursor.
POSITION = Cursor(Number, Number, Annotated[datetime, msgspec.Meta(tz=True)])


class StreamCursor(NamedTuple):
    """The position after an event of the stream, and the time when the client read that far.

    A database that went back gives its numbers again, so `event` has what is never given again. It follows the padding,
    where 1.1.0 stops reading: so readers can go there and back. Cursors of 1.1.0 lack it.
    """

    transaction: int
    id: int
    read_at: datetime
    event: UUID | None = None

    @classmethod
    def decode(cls, text: str) -> "StreamCursor":
        """Raises ValueError."""
        position, padding, event = text.rpartition("=")
        transaction_id, pk, read_at = POSITION.decode(position or text)
        return cls(transaction_id, pk, read_at, UUID(event) if padding else None)

    def encode(self) -> str:
        fields = msgspec.json.encode(self[:3])
        # A blank makes a padding necessary.
        position = base64.urlsafe_b64encode(fields if len(fields) % 3 else fields + b" ").decode()
        return f"{position}{self.event.hex}" if self.event else position.rstrip("=")


class EventPage(NamedTuple):
    """The bodies of events. The next page begins at `end`; `has_more` tells whether it has events now."""

    bodies: Sequence[bytes]
    end: StreamCursor
    has_more: bool


def read_event_page(after: StreamCursor | None, kinds: Collection[str], limit: int, now: datetime) -> EventPage:
    """Reads events of these kinds after a cursor, or from the oldest one in the stream. Raises CursorGone."""
    if after and (after.read_at < now - EVENT_RETENTION - READING_GRACE or not is_known(after)):
        raise CursorGone
    settled = list_settled_events()
    events = select_after(settled, after) if after else settled.filter(created_at__gte=now - EVENT_RETENTION)
    # The body, and the fields of a StreamCursor.
    rows = events.order_by("transaction", "id").values_list("body", "transaction", "id", "created_at", "uuid")
    page = cut_page(list(rows.filter(kind__in=kinds)[: limit + 1]), limit, Start(), lambda row: row[1:])
    end = StreamCursor(*page.next_key) if page.next_key else build_last_position(settled, now)
    return EventPage([bytes(body) for body, *_ in page.rows], end, has_more=bool(page.next_key))


def is_known(cursor: StreamCursor) -> bool:
    """Tells whether the database has the events before the cursor as the client read them.

    A database that lost the event of the cursor can write new ones at or before its position, which would be skipped.
    While there is none, nothing is skipped: the event has expired, and no other came.
    """
    position = (cursor.transaction, cursor.id)
    read_at = Restoration._meta.get_field("restored_at").get_db_prep_value(cursor.read_at, connection)
    event = Event._meta.get_field("uuid").get_db_prep_value(cursor.event, connection)
    [(known,)] = fetch_all(IS_KNOWN_SQL.format(UP_TO_SQL[connection.vendor]), [read_at, *position, event, *position])
    return bool(known)


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


def list_settled_events() -> QuerySet[Event]:
    """Returns the events before which no other event can appear. The queryset gives the same events each time."""
    if connection.vendor == "sqlite":
        # SQLite has one writer at a time.
        return Event.objects.filter(id__lte=Event.objects.aggregate(last=Max("id", default=0))["last"])
    [(oldest_running,)] = fetch_all("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return Event.objects.filter(transaction__lt=int(oldest_running))


def select_after(events: QuerySet[Event], after: StreamCursor) -> QuerySet[Event]:
    if connection.vendor == "sqlite":
        # All events have transaction 0. With this equality the index begins at the id; a range would scan all events.
        return ID_ORDER.sort(events.filter(transaction=0), Start((after.id,)), descending=False)
    return STREAM_ORDER.sort(events, Start((after.transaction, after.id)), descending=False)


def build_last_position(events: QuerySet[Event], now: datetime) -> StreamCursor:
    """Returns the position after the last event of any kind, so that the next page does not scan these events again."""
    last_event = events.order_by("-transaction", "-id").values_list("transaction", "id", "uuid").first()
    transaction_id, pk, event = last_event or (0, 0, None)
    return StreamCursor(transaction_id, pk, now, event)
