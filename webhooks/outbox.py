"""Writes events in the transaction of the change that they describe, with a delivery for each subscribed endpoint."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from library_site.db.sql import (
    CompiledQuery,
    PreparedStatement,
    build_source,
    execute,
    fetch_all,
    get_column_types,
    thread_connection,
)
from library_site.monitoring.tracing import find_traceparent
from webhooks.models import Delivery, Endpoint, Event
from webhooks.registry import PING_KIND

EVENT_BATCH = 500
EVENT_COLUMNS = ("uuid", "kind", "subject", "body", "created_at", "traceparent")
# The columns whose values have a format of the database.
EVENT_FIELDS: list[Any] = [Event._meta.get_field(name) for name in ("uuid", "body", "created_at")]
INSERT_EVENT_SQL = f"INSERT INTO webhooks_event ({', '.join(EVENT_COLUMNS)})"
INSERT_DELIVERY_SQL = "INSERT INTO webhooks_delivery (event_id, endpoint_id) {}"
# It follows the statement `event`, which returns the ids of events.
INSERT_DELIVERIES_SQL = INSERT_DELIVERY_SQL.format(
    "SELECT event.id, subscriber.id FROM event CROSS JOIN ({}) AS subscriber"
)
# Only the database knows the id of a new subject: it goes between two parts of the body.
BODY_SQL = "%s::bytea || convert_to(changed.id::text, 'UTF8') || %s::bytea"
EVENT_SQL = f"{INSERT_EVENT_SQL} SELECT %s, %s, changed.id, {BODY_SQL}, %s, %s FROM changed RETURNING id"  # noqa: S608  # our own SQL
encode_body = msgspec.json.Encoder().encode


class NoTransaction(Exception):
    """Outside a transaction, an event could be lost, or describe a change that was rolled back."""


class EventData(NamedTuple):
    """What happened: the kind of the event, the subject's id if it has one, and data that msgspec can encode."""

    kind: str
    subject: int | None
    data: Any


class StoredEvent(NamedTuple):
    uuid: UUID
    kind: str
    subject: int | None
    body: bytes
    created_at: datetime
    traceparent: str | None


class EventBody(msgspec.Struct):
    """Specification, Section 6."""

    id: UUID
    event: str
    timestamp: str
    api_version: int
    data: Any


def publish(events: Iterable[EventData], now: datetime) -> None:
    """Writes the events and their deliveries. Raises NoTransaction."""
    require_transaction()
    for batch in split_batches(events):
        for kind, group in groupby(batch, key=attrgetter("kind")):
            insert_events(kind, [build_event(data, now) for data in group])


def create_ping(endpoint: Endpoint, now: datetime) -> Delivery:
    """Creates an event for this endpoint alone, to test it. Raises NoTransaction."""
    require_transaction()
    event = Event.objects.create(**build_event(EventData(PING_KIND, None, {"endpoint": endpoint.pk}), now)._asdict())
    return Delivery.objects.create(event=event, endpoint=endpoint)


def require_transaction() -> None:
    """Raises NoTransaction."""
    if not connection.in_atomic_block:
        raise NoTransaction


def split_batches(events: Iterable[EventData]) -> Iterator[Sequence[EventData]]:
    iterator = iter(events)
    while batch := list(islice(iterator, EVENT_BATCH)):
        yield batch


def build_event(data: EventData, now: datetime) -> StoredEvent:
    uuid = uuid4()
    body = encode_body(EventBody(uuid, data.kind, format_event_time(now), settings.EVENT_API_VERSION, data.data))
    return StoredEvent(uuid, data.kind, data.subject, body, now, find_traceparent())


def format_event_time(utc_time: datetime) -> str:
    """In the format of RFC 3339."""
    return utc_time.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def insert_events(kind: str, events: Sequence[StoredEvent]) -> None:
    """Inserts events of one kind and their deliveries, with at most three statements for any number of endpoints."""
    # Not `connection`, which looks itself up for each value.
    database = connections[DEFAULT_DB_ALIAS]
    uuid_field, body_field, time_field = EVENT_FIELDS
    created_at = time_field.get_db_prep_save(events[0].created_at, database)
    rows = [
        event._replace(
            uuid=uuid_field.get_db_prep_save(event.uuid, database),
            body=body_field.get_db_prep_save(event.body, database),
            created_at=created_at,
        )
        for event in events
    ]
    source, values = build_source(get_column_types(Event, EVENT_COLUMNS), rows)
    insert_events_sql = f"{INSERT_EVENT_SQL} {source} RETURNING id"
    if connection.vendor == "postgresql":
        insert_sql = INSERT_DELIVERIES_SQL.format(build_subscribers_sql(kind))
        execute(f"WITH event AS ({insert_events_sql}) {insert_sql}", values)
        return
    ids, endpoints = fetch_all(insert_events_sql, values), fetch_all(build_subscribers_sql(kind))
    if deliveries := [(*event, *endpoint) for event in ids for endpoint in endpoints]:
        with database.cursor() as cursor:
            cursor.executemany(INSERT_DELIVERY_SQL.format("VALUES (%s, %s)"), deliveries)


@cache
def build_subscribers_sql(kind: str) -> str:
    """The statement that selects the ids of the endpoints that receive events of a kind."""
    return CompiledQuery(Endpoint.objects.subscribed_to(kind).values("id")).statement.sql


def execute_with_event(ctes: str, parameters: Sequence[Any], kind: str, event: Sequence[Any]) -> int | None:
    """Returns the id of the subject, or None if nothing was changed.

    `ctes` are common table expressions. One is `changed`, which returns the `id` of the subject or no row. `event` are
    `event_params`.
    """
    with open_savepoint():
        rows = build_statement(ctes, kind).fetch_all([*parameters, *event])
    return rows[0][0] if rows else None


def open_savepoint() -> AbstractContextManager[None]:
    """Returns a savepoint if the caller has a transaction, so that an error does not abort it; else a null context."""
    return transaction.atomic() if thread_connection.database.in_atomic_block else nullcontext()


@cache
def build_statement(ctes: str, kind: str) -> PreparedStatement:
    deliveries = INSERT_DELIVERIES_SQL.format(build_subscribers_sql(kind))
    return PreparedStatement(
        f"WITH {ctes}, event AS ({EVENT_SQL}), delivery AS ({deliveries}) SELECT id FROM changed"  # noqa: S608  # our own SQL
    )


def event_params(data: EventData, now: datetime) -> list[Any]:
    """Raises ValueError for data that do not have the subject, which begins with its id."""
    event, pk = build_event(data, now), str(data.subject).encode()
    start = event.body.index(b'{"id":%b,' % pk) + len('{"id":')
    parts = event.body[:start], event.body[start + len(pk) :]
    return [event.uuid, event.kind, *parts, event.created_at, event.traceparent]
