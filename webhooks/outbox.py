"""Events are written here, in the transaction of the change that they tell of, with a delivery for each listener."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from django.db import connection, transaction

from library_site.db.sql import Statement, among, asked, carried_out
from webhooks.models import Delivery, Endpoint, Event
from webhooks.registry import PING

BATCH = 500
# Seconds. A worker that was woken looks again for longer than this.
HINT_EVERY = 0.1
CHANNEL = "webhooks"
FIELDS: list[Any] = [Event._meta.get_field(name) for name in ("uuid", "kind", "subject", "body", "created_at")]
PLACES = "(%s, %s, %s, %s, %s)"
EVENTS = "INSERT INTO webhooks_event (uuid, kind, subject, body, created_at) VALUES {} RETURNING id"
WRITTEN = "SELECT id FROM webhooks_event WHERE id IN ({})"
DELIVERIES = (
    "INSERT INTO webhooks_delivery (event_id, endpoint_id)"
    " SELECT event.id, listener.id FROM event CROSS JOIN ({}) AS listener"
)
TELLING = (
    "WITH changed AS ({}),"
    " event AS (INSERT INTO webhooks_event (uuid, kind, subject, body, created_at)"
    " SELECT %s, %s, id, %s::bytea || convert_to(id::text, 'UTF8') || %s::bytea, %s FROM changed RETURNING id),"
    " deliveries AS ({})"
    " SELECT id FROM changed"
)
# The id of a row that is not there yet, as no text of a body is likely to have it.
UNKNOWN = 7_305_216_490_183_527_469
encode = msgspec.json.Encoder().encode


class NoTransaction(Exception):
    """Without one, an event could be lost, or tell of a change that was not made."""


class SeveralSubjects(Exception):
    """A text has the very digits that stand for the subject."""


class Announcement(NamedTuple):
    """What happened to a subject, if to any; `data` is what msgspec can encode."""

    kind: str
    subject: int | None
    data: Any


class Written(NamedTuple):
    """An event as it is kept."""

    uuid: UUID
    kind: str
    subject: int | None
    body: bytes
    created_at: datetime


class Body(msgspec.Struct):
    """What is sent of an event (specification, Section 6)."""

    id: UUID
    event: str
    timestamp: str
    api_version: int
    data: Any


def publish(announcements: Iterable[Announcement], now: datetime) -> None:
    """Writes an event for each, and what is to be delivered. Raises NoTransaction."""
    require_transaction()
    for batch in batches(announcements):
        for kind, of_kind in groupby(batch, key=attrgetter("kind")):
            write(kind, [written(one, now) for one in of_kind])
    wake_workers()


def ping(endpoint: Endpoint, now: datetime) -> Delivery:
    """An event for this endpoint alone, to try it with. Raises NoTransaction."""
    require_transaction()
    event = Event.objects.create(**written(Announcement(PING, None, {"endpoint": endpoint.pk}), now)._asdict())
    wake_workers()
    return Delivery.objects.create(event=event, endpoint=endpoint)


def require_transaction() -> None:
    """Raises NoTransaction."""
    if not connection.in_atomic_block:
        raise NoTransaction


def wake_workers() -> None:
    """Once the transaction commits."""
    transaction.on_commit(hint.give, robust=True)


def batches(announcements: Iterable[Announcement]) -> Iterator[Sequence[Announcement]]:
    rest = iter(announcements)
    while batch := list(islice(rest, BATCH)):
        yield batch


def written(announcement: Announcement, now: datetime) -> Written:
    uuid, kind = uuid4(), announcement.kind
    moment = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    body = encode(Body(uuid, kind, moment, settings.EVENT_API_VERSION, announcement.data))
    return Written(uuid, kind, announcement.subject, body, now)


def columns(event: Written) -> list[Any]:
    """As the database takes them."""
    return [field.get_db_prep_save(value, connection) for field, value in zip(FIELDS, event, strict=True)]


def write(kind: str, of_kind: Sequence[Written]) -> None:
    """Events of one kind and their deliveries: in as many statements however many listen."""
    places = ", ".join([PLACES] * len(of_kind))
    events = [value for one in of_kind for value in columns(one)]
    listeners, parameters = taking(kind)
    deliveries = DELIVERIES.format(listeners)
    if connection.vendor == "postgresql":
        carried_out(f"WITH event AS ({EVENTS.format(places)}) {deliveries}", [*events, *parameters])
    else:
        found = among(pk for (pk,) in asked(EVENTS.format(places), events))
        carried_out(f"WITH event AS ({WRITTEN.format(found)}) {deliveries}", parameters)


@cache
def telling(change: str, kind: str) -> Statement:
    """A change of one subject, which returns its id, with its event and deliveries, in one statement of PostgreSQL.

    It answers the id, or nothing where nothing was changed. After the parameters of the change come `told`.
    """
    return Statement(TELLING.format(change, DELIVERIES.format(taking(kind)[0])))


def told(announcement: Announcement, now: datetime) -> list[Any]:
    """The parameters of `telling`. The announcement's data say UNKNOWN for the subject. Raises SeveralSubjects."""
    event = written(announcement, now)
    before, *after = event.body.split(b"%d" % UNKNOWN)
    if len(after) != 1:
        raise SeveralSubjects
    return [event.uuid, event.kind, before, *after, event.created_at, *taking(event.kind)[1]]


@cache
def taking(kind: str) -> tuple[str, tuple[Any, ...]]:
    """The statement that finds who takes events of a kind."""
    return Endpoint.objects.taking(kind).values("id").query.sql_with_params()


class Hint:
    """Tells workers on PostgreSQL that there is something to do: after the commit, since NOTIFY would have all commits
    wait for each other, and not after each, since workers look again anyway.
    """

    def __init__(self) -> None:
        self.given_at = 0.0

    def give(self) -> None:
        if connection.vendor == "postgresql" and time.monotonic() - self.given_at > HINT_EVERY:
            self.given_at = time.monotonic()
            carried_out(f"NOTIFY {CHANNEL}")


hint = Hint()
