"""Changes a subject and writes its event and the deliveries by one statement of PostgreSQL."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache
from typing import Any

from django.db import transaction

from library_site.db.sql import PreparedStatement, thread_connection
from library_site.monitoring.tracing import get_traceparent
from webhooks.outbox import (
    INSERT_DELIVERIES_SQL,
    INSERT_EVENT_SQL,
    EventData,
    build_event,
    encode_body,
    make_head,
    subscribers_sql,
)

# The body of an event is a parameter. For a new subject it has two parts: only the database knows the id between them.
BODY_SQL = "%s::bytea"
BODY_WITH_ID_SQL = "%s::bytea || convert_to(changed.id::text, 'UTF8') || %s::bytea"
EVENT_SQL = f"{INSERT_EVENT_SQL} SELECT %s, %s, changed.id, {{}}, %s, %s FROM changed RETURNING id"  # noqa: S608  # our own SQL


def execute_with_event(
    ctes: str, parameters: Sequence[Any], kind: str, event: Sequence[Any], body: str = BODY_SQL
) -> int | None:
    """Returns the id of the subject, or None if nothing was changed.

    `ctes` are common table expressions. One is `changed`, which returns the `id` of the subject or no row. `event` are
    `event_params` for BODY_SQL, and `new_event_params` for BODY_WITH_ID_SQL.
    """
    with open_savepoint():
        rows = build_statement(ctes, kind, body).fetch_all([*parameters, *event])
    return rows[0][0] if rows else None


def open_savepoint() -> AbstractContextManager[None]:
    """Returns a savepoint if the caller has a transaction, so that an error does not abort it; else a null context."""
    return transaction.atomic() if thread_connection.database.in_atomic_block else nullcontext()


@cache
def build_statement(ctes: str, kind: str, body: str) -> PreparedStatement:
    event = EVENT_SQL.format(body)
    deliveries = INSERT_DELIVERIES_SQL.format(subscribers_sql(kind))
    return PreparedStatement(
        f"WITH {ctes}, event AS ({event}), delivery AS ({deliveries}) SELECT id FROM changed"  # noqa: S608  # our own SQL
    )


def event_params(data: EventData, now: datetime) -> list[Any]:
    """The event's parameters for a subject that exists (BODY_SQL)."""
    event = build_event(data, now)
    return [event.uuid, event.kind, event.body, event.created_at, event.traceparent]


def new_event_params(kind: str, data_parts: tuple[bytes, bytes], now: datetime) -> list[Any]:
    """The event's parameters for a new subject (BODY_WITH_ID_SQL). The id goes between the two parts of the data."""
    before, after = data_parts
    head = make_head(kind, now)
    beginning = encode_body(head).removesuffix(b"}") + b',"data":'
    return [head.id, kind, beginning + before, after + b"}", now, get_traceparent()]
