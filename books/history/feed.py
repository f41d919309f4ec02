"""The changes of all books, newest first. All changes of an operation are one item: its newest change."""

from collections.abc import Sequence

from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from books.history.change_pages import (
    BY_TIME,
    Entry,
    Filters,
    build_page,
    get_time_key,
    list_conditions,
    read_rows,
)
from books.history.loans import NO_LOAN, build_loan_condition
from books.models import Change
from library_site.db.keyset import Page, Start
from library_site.db.sql import fetch_all

# Each step is one look into an index: to the next change or, after a change of an operation, to the next one with
# another time. An operation writes hundreds of changes with the same time, so a million of them are some thousand
# steps. Of its steps only the first is an item.
STEPS_SQL = """
    WITH RECURSIVE step (id, at, operation_id) AS (
        SELECT first.id, first.at, first.operation_id FROM books_change AS first WHERE first.id = ({first})
        UNION ALL
        SELECT next.id, next.at, next.operation_id FROM step JOIN books_change AS next
        ON next.id = CASE WHEN step.operation_id IS NULL THEN ({next}) ELSE ({earlier}) END
    )
    SELECT id FROM step WHERE operation_id IS NULL OR (EXISTS ({same}) AND ({newer}) IS NULL) LIMIT %s
"""
IS_NEXT = "(books_change.at, books_change.id) < (step.at, step.id)"
IS_EARLIER = "books_change.at < step.at"
IS_SAME = "books_change.id = step.id"
IS_NEWER = "books_change.operation_id = step.operation_id AND books_change.id > step.id"


def read_feed(filters: Filters, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of items. It reads forward only."""
    kind = Q(kind=filters.kind) if filters.kind else Q()
    loan = build_loan_condition(filters.loan) if filters.loan else Q()
    # Loans and returns have an index. SQLite uses it only in a statement without a kind. For other changes, one step
    # skips an operation that lent a million books.
    step = {"": kind, NO_LOAN: kind & (Q(operation__isnull=False) | loan)}.get(filters.loan, loan)
    conditions = list_conditions(filters._replace(kind=None, loan=""))
    pks = [
        pk for condition in conditions for pk in list_items(condition & kind, condition & step, loan, start, limit + 1)
    ]
    rows = sorted(read_rows(Change.objects.filter(pk__in=pks)), key=get_time_key, reverse=True)
    return build_page(rows[: limit + 1], limit, start, get_time_key)._replace(previous_key=None)


def list_items(condition: Q, step: Q, loan: Q, start: Start, limit: int) -> Sequence[int]:
    """Returns ids of changes. Of an operation only the newest change is compared with `loan`, so no others are read."""
    changes = Change.objects.values("pk")
    steps = BY_TIME.sort(changes, descending=True)
    parts = {
        "first": BY_TIME.sort(changes, start, descending=True).filter(step)[:1],
        "next": steps.filter(build_sql_condition(IS_NEXT), step)[:1],
        "earlier": steps.filter(build_sql_condition(IS_EARLIER), step)[:1],
        "same": changes.filter(build_sql_condition(IS_SAME), loan),
        # PostgreSQL would answer NOT EXISTS by reading the table if one operation has most of the changes.
        "newer": changes.filter(build_sql_condition(IS_NEWER), condition).order_by("pk")[:1],
    }
    statements = {name: rows.query.sql_with_params() for name, rows in parts.items()}
    sql = STEPS_SQL.format(**{name: text for name, (text, _values) in statements.items()})
    values = [value for _text, values in statements.values() for value in values]
    return [pk for (pk,) in fetch_all(sql, [*values, limit])]


def build_sql_condition(sql: str) -> RawSQL:
    return RawSQL(sql, (), BooleanField())  # noqa: S611  # our own SQL
