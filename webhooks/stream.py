"""The stream of events to pull. Nobody is passed over: events are in the order of their transactions, and shown
once all transactions before them have ended.
"""

import base64
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec
from django.db import connection
from django.db.models import F, Max, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan

from library_site.db.sql import asked
from webhooks.models import KEPT_FOR, Event

LONGEST_CURSOR = 200
# Who begins at the oldest event has so long to go on from it; rows are kept for longer.
TO_GO_ON = timedelta(hours=12)
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class NoCursor(Exception):
    """The text is none of ours."""


class CursorTooOld(Exception):
    """Events behind it are no longer kept."""


class Place(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """Behind an event of the stream, and when a reader was there at the latest."""

    transaction: Number
    id: Number
    at: Instant

    def text(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


class Page(NamedTuple):
    """`bodies` are as they are sent; `end` is where to read on, `more` whether there is more by now."""

    bodies: Sequence[bytes]
    end: Place
    more: bool


def place(text: str) -> Place:
    """Raises NoCursor."""
    if len(text) > LONGEST_CURSOR:
        raise NoCursor
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(f"{text}=="), type=Place)
    except ValueError as error:
        raise NoCursor from error


def page(after: Place | None, kinds: Collection[str], limit: int, now: datetime) -> Page:
    """Events of these kinds behind a place, or the oldest that are kept. Raises CursorTooOld."""
    if after and after.at < now - KEPT_FOR - TO_GO_ON:
        raise CursorTooOld
    rest = settled().filter(beyond(after) if after else Q(created_at__gte=now - KEPT_FOR))
    # One more tells whether there is another page.
    rows = rest.filter(kind__in=kinds).order_by("transaction", "id")[: limit + 1]
    found = list(rows.values_list("body", "transaction", "id", "created_at"))
    bodies = [bytes(body) for body, *_ in found[:limit]]
    if len(found) > limit:
        return Page(bodies, Place(*found[limit - 1][1:]), more=True)
    return Page(bodies, end(rest, after, now), more=False)


def settled() -> QuerySet[Event]:
    """Those before which nothing is still to come, the same however often they are asked for."""
    if connection.vendor == "sqlite":
        # Its writers follow one another.
        return Event.objects.filter(id__lte=Event.objects.aggregate(last=Max("id", default=0))["last"])
    [(number,)] = asked("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return Event.objects.filter(transaction__lt=int(number))


def beyond(after: Place) -> Q:
    if connection.vendor == "sqlite":
        # It finds no place in an index by two columns.
        return Q(transaction=0, id__gt=after.id)
    return Q(TupleGreaterThan(Tuple(F("transaction"), F("id")), (after.transaction, after.id)))


def end(rest: QuerySet[Event], after: Place | None, now: datetime) -> Place:
    """Of all that there is, of other kinds too, which a reader of few need not pass again."""
    last = rest.order_by("-transaction", "-id").values_list("transaction", "id").first()
    behind = (after.transaction, after.id) if after else (0, 0)
    return Place(*(last or behind), now)
