"""Changes a subject and writes its event and the deliveries by one statement of PostgreSQL."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache
from typing import Any

from django.db import transaction

from library_site.db.sql import PreparedStatement, thread_connection
from webhooks.outbox import (
    INSERT_DELIVERIES_SQL,
    INSERT_EVENT_SQL,
    EventData,
    build_event,
    subscribers_sql,
)

# Only the database knows the id of a new subject: it goes between two parts of the body.
BODY_SQL = "%s::bytea || convert_to(changed.id::text, 'UTF8') || %s::bytea"
EVENT_SQL = f"{INSERT_EVENT_SQL} SELECT %s, %s, changed.id, {BODY_SQL}, %s, %s FROM changed RETURNING id"  # noqa: S608  # our own SQL


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
    deliveries = INSERT_DELIVERIES_SQL.format(subscribers_sql(kind))
    return PreparedStatement(
        f"WITH {ctes}, event AS ({EVENT_SQL}), delivery AS ({deliveries}) SELECT id FROM changed"  # noqa: S608  # our own SQL
    )


def event_params(data: EventData, now: datetime) -> list[Any]:
    """Raises ValueError for data that do not have the subject, which begins with its id."""
    event, pk = build_event(data, now), str(data.subject).encode()
    start = event.body.index(b'{"id":%b,' % pk) + len('{"id":')
    parts = event.body[:start], event.body[start + len(pk) :]
    return [event.uuid, event.kind, *parts, event.created_at, event.traceparent]
