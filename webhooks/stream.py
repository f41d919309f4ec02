"""The stream of events to pull. Nobody is passed over: events are in the order of their transactions, and shown
once all transactions before them have ended.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from django.db import connection
from django.db.models import F, Max, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan

from library_site.api.cursors import Cursor
from library_site.db.sql import fetch_all
from library_site.http.refusals import Refusal
from webhooks.models import EVENT_RETENTION, Event

MAX_CURSOR_LENGTH = 200
# Who begins at the oldest event has so long to go on from it; rows are kept for longer.
READING_GRACE = timedelta(hours=12)
CursorInteger = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
CursorTime = Annotated[datetime, msgspec.Meta(tz=True)]


class CursorTooOld(Refusal):
    """Events behind it are no longer kept."""

    status = 410
    message = "The cursor is older than the events that are kept: begin anew without it"


class StreamCursor(Cursor):
    """Behind an event of the stream, and when a reader was there at the latest."""

    transaction: CursorInteger
    id: CursorInteger
    at: CursorTime


class Page(NamedTuple):
    """`bodies` are as they are sent; `end` is where to read on, `more` whether there is more by now."""

    bodies: Sequence[bytes]
    end: StreamCursor
    more: bool


def read_page(after: StreamCursor | None, kinds: Collection[str], limit: int, now: datetime) -> Page:
    """Events of these kinds behind a place, or the oldest that are kept. Raises CursorTooOld."""
    if after and after.at < now - EVENT_RETENTION - READING_GRACE:
        raise CursorTooOld
    rest = settled_events().filter(after_condition(after) if after else Q(created_at__gte=now - EVENT_RETENTION))
    # One more tells whether there is another page.
    rows = rest.filter(kind__in=kinds).order_by("transaction", "id")[: limit + 1]
    found = list(rows.values_list("body", "transaction", "id", "created_at"))
    bodies = [bytes(body) for body, *_ in found[:limit]]
    if len(found) > limit:
        return Page(bodies, StreamCursor(*found[limit - 1][1:]), more=True)
    return Page(bodies, last_position(rest, after, now), more=False)


def settled_events() -> QuerySet[Event]:
    """Those before which nothing is still to come, the same however often they are asked for."""
    if connection.vendor == "sqlite":
        # Its writers follow one another.
        return Event.objects.filter(id__lte=Event.objects.aggregate(last=Max("id", default=0))["last"])
    [(number,)] = fetch_all("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return Event.objects.filter(transaction__lt=int(number))


def after_condition(after: StreamCursor) -> Q:
    if connection.vendor == "sqlite":
        # It finds no place in an index by two columns.
        return Q(transaction=0, id__gt=after.id)
    return Q(TupleGreaterThan(Tuple(F("transaction"), F("id")), (after.transaction, after.id)))


def last_position(rest: QuerySet[Event], after: StreamCursor | None, now: datetime) -> StreamCursor:
    """Of all that there is, of other kinds too, which a reader of few need not pass again."""
    last = rest.order_by("-transaction", "-id").values_list("transaction", "id").first()
    behind = (after.transaction, after.id) if after else (0, 0)
    return StreamCursor(*(last or behind), now)
