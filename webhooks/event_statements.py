"""Changes a subject and writes its event by one statement of PostgreSQL.

While no endpoint is active, the statement has no part for deliveries, which costs time even then. The change has a
condition: that no endpoint is active, in the statement's own snapshot. Where that fails, nothing was written, and the
statement with deliveries runs instead. So an endpoint that somebody adds meanwhile gets the same as from that one.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from django.db import transaction

from library_site.db.sql import PreparedStatement, Row, thread_connection
from library_site.monitoring.tracing import get_traceparent
from webhooks.models import Endpoint
from webhooks.outbox import (
    INSERT_DELIVERIES_SQL,
    INSERT_EVENT_SQL,
    EventData,
    build_event,
    encode_body,
    make_head,
    notify_workers,
    subscribers_sql,
)

# Stands in the condition of a change for a further one.
CONDITION = "<condition>"
# More than those of `EndpointQuerySet.active`: an owner or a time may end an endpoint. Never fewer, or deliveries would
# be lost.
HAS_ACTIVE_SQL = f"EXISTS (SELECT FROM webhooks_endpoint WHERE state = '{Endpoint.State.ACTIVE}')"  # a constant
# The body of an event as a parameter; for a new subject in two parts, because only the database knows its id.
BODY_SQL = "%s::bytea"
BODY_WITH_ID_SQL = "%s::bytea || convert_to(changed.id::text, 'UTF8') || %s::bytea"
EVENT_CTE = f"event AS ({INSERT_EVENT_SQL} SELECT %s, %s, changed.id, {{}}, %s, %s FROM {{}} RETURNING id)"  # noqa: S608  # our own SQL
NO_SAVEPOINT = nullcontext()


class ChangeParts(NamedTuple):
    """The parts of a statement that are not the event's.

    `ctes` are common table expressions. One is `changed`, which returns the `id` of the subject or no row; it has
    CONDITION in its condition. `context` names another one with one row or none. `body` is the SQL of the event's body,
    and `columns` are what the statement returns beside the id; both may use the columns of `changed` and `context`.
    """

    ctes: str
    kind: str
    body: str = BODY_SQL
    context: str = ""
    columns: tuple[str, ...] = ()


class ActiveEndpoints:
    """Whether there may be any. The result of each statement says."""

    may_exist = True


active_endpoints = ActiveEndpoints()


def execute_with_event(parts: ChangeParts, parameters: Sequence[Any], event: Sequence[Any]) -> Row:
    """Returns the id of the subject, None if nothing was changed, and the `columns`. Notifies workers of deliveries.

    `parameters` are those of `ctes`, `event` those of `event_params`, `new_event_params` or `event_head_params`.
    """
    with open_savepoint():
        return execute_parts(parts, parameters, event)


def open_savepoint() -> AbstractContextManager[None]:
    """Returns a savepoint inside a caller's transaction, so that a failure does not end that one; else nothing."""
    return transaction.atomic() if thread_connection.database.in_atomic_block else NO_SAVEPOINT


def execute_parts(parts: ChangeParts, parameters: Sequence[Any], event: Sequence[Any]) -> Row:
    if not active_endpoints.may_exist:
        # Other threads set the attribute, too: only this statement's own result says whether it wrote.
        [(*row, has_active_endpoint)] = build_statement_without_deliveries(parts).fetch_all([*parameters, *event])
        if not has_active_endpoint:
            return tuple(row)
    subscribers = subscribers_sql(parts.kind)[1]
    statement = build_statement_with_deliveries(parts)
    [(*row, has_deliveries, active_endpoints.may_exist)] = statement.fetch_all([*parameters, *event, *subscribers])
    if has_deliveries:
        notify_workers()
    return tuple(row)


@cache
def build_statement_without_deliveries(parts: ChangeParts) -> PreparedStatement:
    """Changes something only if no endpoint is active. Also returns whether one is, if nothing was changed."""
    ctes = parts.ctes.replace(CONDITION, f"NOT {HAS_ACTIVE_SQL}")
    return build_statement(parts, ctes, f"changed.id IS NULL AND {HAS_ACTIVE_SQL}")


@cache
def build_statement_with_deliveries(parts: ChangeParts) -> PreparedStatement:
    """Also returns whether there are deliveries, and whether an endpoint is active."""
    ctes = parts.ctes.replace(CONDITION, "true")
    deliveries = f"delivery AS ({INSERT_DELIVERIES_SQL.format('event', subscribers_sql(parts.kind)[0])} RETURNING 1)"
    return build_statement(parts, ctes, "EXISTS (SELECT FROM delivery)", HAS_ACTIVE_SQL, deliveries=deliveries)


def build_statement(parts: ChangeParts, ctes: str, *findings: str, deliveries: str = "") -> PreparedStatement:
    sources = ["changed", *([parts.context] if parts.context else [])]
    event = EVENT_CTE.format(parts.body, " CROSS JOIN ".join(sources))
    all_ctes = ", ".join([ctes, event, *([deliveries] if deliveries else [])])
    columns = ", ".join(["changed.id", *parts.columns, *findings])
    joins = " ".join(f"LEFT JOIN {source} ON true" for source in sources)
    return PreparedStatement(f"WITH {all_ctes} SELECT {columns} FROM (VALUES (0)) AS one {joins}")  # noqa: S608  # our own SQL


def event_params(data: EventData, now: datetime) -> list[Any]:
    """The event's parameters for a subject that exists (BODY_SQL)."""
    event = build_event(data, now)
    return [event.uuid, event.kind, event.body, event.created_at, event.traceparent]


def new_event_params(kind: str, data_parts: tuple[bytes, bytes], now: datetime) -> list[Any]:
    """The event's parameters for a new subject (BODY_WITH_ID_SQL). The id goes between the two parts of the data."""
    before, after = data_parts
    [uuid, _, head, *others] = event_head_params(kind, now)
    return [uuid, kind, head + before, after + b"}", *others]


def event_head_params(kind: str, now: datetime) -> list[Any]:
    """The event's parameters for a body of which the database makes the data; the first part of the body ends there."""
    head = make_head(kind, now)
    return [head.id, kind, encode_body(head).removesuffix(b"}") + b',"data":', now, get_traceparent()]
