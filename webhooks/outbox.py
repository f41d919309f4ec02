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

from library_site.db.sql import PreparedStatement, execute, fetch_all, id_list
from webhooks.models import Delivery, Endpoint, Event
from webhooks.registry import PING_KIND

EVENT_BATCH = 500
# Seconds. A worker that was woken looks again for longer than this.
NOTIFY_INTERVAL = 0.1
NOTIFY_CHANNEL = "webhooks"
EVENT_FIELDS: list[Any] = [Event._meta.get_field(name) for name in ("uuid", "kind", "subject", "body", "created_at")]
EVENT_PLACEHOLDERS = "(%s, %s, %s, %s, %s)"
INSERT_EVENTS_SQL = "INSERT INTO webhooks_event (uuid, kind, subject, body, created_at) VALUES {} RETURNING id"
STORED_EVENTS_SQL = "SELECT id FROM webhooks_event WHERE id IN ({})"
INSERT_DELIVERIES_SQL = (
    "INSERT INTO webhooks_delivery (event_id, endpoint_id)"
    " SELECT event.id, listener.id FROM event CROSS JOIN ({}) AS listener"
)
CHANGE_WITH_EVENT_SQL = (
    "WITH changed AS ({}),"
    " event AS (INSERT INTO webhooks_event (uuid, kind, subject, body, created_at)"
    " SELECT %s, %s, id, {}, %s FROM changed RETURNING id),"
    " deliveries AS ({})"
    " SELECT id FROM changed"
)
# The body of an event as a parameter; of a new subject in two parts, since the database alone knows its id.
BODY_SQL = "%s::bytea"
BODY_WITH_ID_SQL = "%s::bytea || convert_to(id::text, 'UTF8') || %s::bytea"
encode_body = msgspec.json.Encoder().encode


class NoTransaction(Exception):
    """Without one, an event could be lost, or tell of a change that was not made."""


class EventData(NamedTuple):
    """What happened to a subject, if to any; `data` is what msgspec can encode."""

    kind: str
    subject: int | None
    data: Any


class StoredEvent(NamedTuple):
    """An event as it is kept."""

    uuid: UUID
    kind: str
    subject: int | None
    body: bytes
    created_at: datetime


class EventHead(msgspec.Struct):
    """What every event is sent with (specification, Section 6)."""

    id: UUID
    event: str
    timestamp: str
    api_version: int


class EventBody(EventHead):
    """An event as it is sent."""

    data: Any


def publish(announcements: Iterable[EventData], now: datetime) -> None:
    """Writes an event for each, and what is to be delivered. Raises NoTransaction."""
    require_transaction()
    for batch in split_batches(announcements):
        for kind, of_kind in groupby(batch, key=attrgetter("kind")):
            insert_events(kind, [build_event(one, now) for one in of_kind])
    notify_workers()


def create_ping(endpoint: Endpoint, now: datetime) -> Delivery:
    """An event for this endpoint alone, to try it with. Raises NoTransaction."""
    require_transaction()
    event = Event.objects.create(**build_event(EventData(PING_KIND, None, {"endpoint": endpoint.pk}), now)._asdict())
    notify_workers()
    return Delivery.objects.create(event=event, endpoint=endpoint)


def require_transaction() -> None:
    """Raises NoTransaction."""
    if not connection.in_atomic_block:
        raise NoTransaction


def notify_workers() -> None:
    """Once the transaction commits."""
    transaction.on_commit(worker_notifier.notify, robust=True)


def split_batches(announcements: Iterable[EventData]) -> Iterator[Sequence[EventData]]:
    rest = iter(announcements)
    while batch := list(islice(rest, EVENT_BATCH)):
        yield batch


def build_event(data: EventData, now: datetime) -> StoredEvent:
    uuid, kind = uuid4(), data.kind
    body = encode_body(EventBody(uuid, kind, format_time(now), settings.EVENT_API_VERSION, data.data))
    return StoredEvent(uuid, kind, data.subject, body, now)


def format_time(time: datetime) -> str:
    """RFC 3339, of a time in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def column_values(event: StoredEvent) -> list[Any]:
    """As the database takes them."""
    return [field.get_db_prep_save(value, connection) for field, value in zip(EVENT_FIELDS, event, strict=True)]


def insert_events(kind: str, of_kind: Sequence[StoredEvent]) -> None:
    """Events of one kind and their deliveries: in as many statements however many listen."""
    places = ", ".join([EVENT_PLACEHOLDERS] * len(of_kind))
    events = [value for one in of_kind for value in column_values(one)]
    listeners, parameters = subscribers_sql(kind)
    deliveries = INSERT_DELIVERIES_SQL.format(listeners)
    if connection.vendor == "postgresql":
        execute(f"WITH event AS ({INSERT_EVENTS_SQL.format(places)}) {deliveries}", [*events, *parameters])
    else:
        found = id_list(pk for (pk,) in fetch_all(INSERT_EVENTS_SQL.format(places), events))
        execute(f"WITH event AS ({STORED_EVENTS_SQL.format(found)}) {deliveries}", parameters)


@cache
def change_with_event_sql(change: str, kind: str, body: str = BODY_SQL) -> PreparedStatement:
    """A change of one subject with its event and deliveries, in one statement of PostgreSQL.

    `change` is a statement that returns the id. The result is that id, or no row where nothing was changed. The
    parameters are those of the change, then `event_params`.
    """
    deliveries = INSERT_DELIVERIES_SQL.format(subscribers_sql(kind)[0])
    return PreparedStatement(CHANGE_WITH_EVENT_SQL.format(change, body, deliveries))


def event_params(data: EventData, now: datetime) -> list[Any]:
    """Parameters for a change of a subject that is there (BODY_SQL)."""
    event = build_event(data, now)
    return [event.uuid, event.kind, event.body, event.created_at, *subscribers_sql(event.kind)[1]]


def new_event_params(kind: str, data_parts: tuple[bytes, bytes], now: datetime) -> list[Any]:
    """Parameters for a new subject (BODY_WITH_ID_SQL); its id stands between the two parts of the event's data."""
    uuid, (before, after) = uuid4(), data_parts
    head = encode_body(EventHead(uuid, kind, format_time(now), settings.EVENT_API_VERSION)).removesuffix(b"}")
    return [uuid, kind, b'%b,"data":%b' % (head, before), after + b"}", now, *subscribers_sql(kind)[1]]


@cache
def subscribers_sql(kind: str) -> tuple[str, tuple[Any, ...]]:
    """The statement that finds who takes events of a kind."""
    return Endpoint.objects.subscribed_to(kind).values("id").query.sql_with_params()


class WorkerNotifier:
    """Tells workers on PostgreSQL that there is something to do: after the commit, since NOTIFY would have all commits
    wait for each other, and not after each, since workers look again anyway.
    """

    def __init__(self) -> None:
        self.given_at = 0.0

    def notify(self) -> None:
        if connection.vendor == "postgresql" and time.monotonic() - self.given_at > NOTIFY_INTERVAL:
            self.given_at = time.monotonic()
            execute(f"NOTIFY {NOTIFY_CHANNEL}")


worker_notifier = WorkerNotifier()
