"""Reads pages of the history, newest first, without model objects and without counting.

A page costs the same however many changes there are: they are read along an index. Where no index has all conditions, a
limited number of changes is looked at; such a page may have fewer entries than its limit, or none, and yet go on.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from django.db import connection

from books.fields import TimestampField
from books.models import Actor, Change
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Key, Page, Start, build_condition_sql, build_page, cut_page
from library_site.db.sql import Row, fetch_all

# The changes of more actors than these are not merged.
MAX_MERGED_ACTORS = 100
# The number of changes that a page looks at along an index that lacks some of its conditions.
MAX_SCANNED_CHANGES = 5_000
# The number of changes that an iteration holds in memory.
ITERATION_PAGE = 1_000
# By the names that addresses have.
CHANGE_KINDS = {kind.label: kind for kind in Change.Kind}
ENTRY_COLUMNS = "id, book_id, version, kind, at, actor_id, operation_id, before, after"
NAME_COLUMNS = ("user_name", "app_name", "api_key_name", "source_name")
ACTOR_COLUMNS = ("id", "channel", *NAME_COLUMNS)
# A part of a UNION ALL whose rows the database merges in their order. PostgreSQL does so if each part is sorted and has
# a limit, SQLite if none is and has.
MERGED_PART = {"postgresql": "({select}{order} LIMIT {limit})", "sqlite": "{select}"}
TIMESTAMP = TimestampField()


class ActorNames(NamedTuple):
    """Through what a change was made, and the names of who made it; None where there is none."""

    channel: str
    user: str | None
    app: str | None
    api_key: str | None
    source: str | None


# Operators can restore an older database under processes that remember newer actors.
UNKNOWN_ACTOR = ActorNames(Actor.Channel.COMMAND, None, None, None, None)


class Entry(NamedTuple):
    """A change of a book; `at` is in UTC, without a time zone."""

    id: int
    book_id: int
    version: int
    kind: Change.Kind
    at: datetime
    actor: ActorNames
    operation_id: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Filters(NamedTuple):
    """What changes must match: names, of which `actor` is any; a channel; a kind; an operation; a span of time, which
    includes `since` and excludes `until`.
    """

    actor: str = ""
    user: str = ""
    app: str = ""
    api_key: str = ""
    source: str = ""
    channel: str = ""
    kind: Change.Kind | None = None
    operation: int | None = None
    since: datetime | None = None
    until: datetime | None = None


class Condition(NamedTuple):
    """SQL, and the values of its parameters."""

    sql: str
    parameters: tuple[Any, ...] = ()


class Order(NamedTuple):
    """The columns that sort changes, and where to begin."""

    columns: tuple[str, ...]
    start: Start

    @property
    def sql(self) -> str:
        direction = "ASC" if self.start.backward else "DESC"
        return " ORDER BY " + ", ".join(f"{column} {direction}" for column in self.columns)

    def build_conditions(self) -> list[Condition]:
        """The condition for changes beyond the key."""
        if self.start.key is None:
            return []
        key = tuple(adapt(value) for value in self.start.key)
        return [Condition(*build_condition_sql(self.columns, key, descending=not self.start.backward))]


class IndexRange(NamedTuple):
    """Changes along an index. Each of `spans` has the conditions of one span; the index lacks those of `rest`."""

    spans: Sequence[Sequence[Condition]]
    rest: Sequence[Condition]


def read_book_page(book_id: int, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of a book, which may be deleted."""
    if abs(book_id) > BIGINT_MAX:
        return Page([])
    order = Order(("version",), start)
    rows = fetch_rows(
        IndexRange([[Condition("book_id = %s", (book_id,)), *order.build_conditions()]], []), order, limit + 1
    )
    return build_entries(cut_page(rows, limit, start, get_version_key))


def read_recent_page(filters: Filters, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of all books.

    Each index that has some of the conditions is tried, until one gives the whole page; else that counts which leads
    furthest.
    """
    if filters.operation is not None:
        return read_operation_page(filters, start, limit)
    order, pages = Order(("at", "id"), start), []
    for scan in build_scans(filters, order):
        rows = fetch_rows(scan, order, limit + 1)
        end = None if len(rows) > limit else find_range_end(scan, order, rows)
        if end is None:
            return build_entries(cut_page(rows, limit, start, get_time_key))
        pages.append((end, rows))
    if not pages:
        return Page([])
    end, rows = (max if start.backward else min)(pages, key=itemgetter(0))
    return build_entries(build_page(rows, start, end, get_time_key))


def read_operation_page(filters: Filters, start: Start, limit: int) -> Page[Entry]:
    """The changes of an operation are read by id: it makes one after the other, so their times have the same order."""
    order = Order(("id",), start._replace(key=start.key and start.key[-1:]))
    span = [Condition("operation_id = %s", (filters.operation,)), *order.build_conditions()]
    rest = [*build_kind_conditions(filters), *build_time_conditions(filters)]
    if actor_conditions := build_actor_conditions(filters):
        rest.append(build_actor_lookup(actor_conditions))
    return read_range(IndexRange([span], rest), order, limit)


def read_range(scan: IndexRange, order: Order, limit: int) -> Page[Entry]:
    rows = fetch_rows(scan, order, limit + 1)
    if len(rows) > limit:
        return build_entries(cut_page(rows, limit, order.start, get_time_key))
    return build_entries(build_page(rows, order.start, find_range_end(scan, order, rows), get_time_key))


def iter_actor_entries(actor_id: int) -> Iterator[Entry]:
    """Yields all changes of an actor, the oldest first. They are never all in memory."""
    names, start = read_actor_names([actor_id]), Start(backward=True)
    while True:
        order = Order(("at", "id"), start)
        span = [Condition("actor_id = %s", (actor_id,)), *order.build_conditions()]
        rows = fetch_rows(IndexRange([span], []), order, ITERATION_PAGE)
        yield from (build_entry(row, names) for row in rows)
        if len(rows) < ITERATION_PAGE:
            return
        start = Start(get_time_key(rows[-1]), backward=True)


def build_scans(filters: Filters, order: Order) -> Iterator[IndexRange]:
    """Yields the ways to read the changes; none if no actor matches."""
    span = [*build_time_conditions(filters), *order.build_conditions()]
    kinds = build_kind_conditions(filters)
    actor_conditions = build_actor_conditions(filters)
    if not actor_conditions:
        yield IndexRange([[*kinds, *span]], [])
        return
    sql, parameters = select_actors(actor_conditions)
    actor_ids = [pk for (pk,) in fetch_all(f"{sql} LIMIT {MAX_MERGED_ACTORS + 1}", parameters)]
    if not actor_ids:
        return
    is_merged = len(actor_ids) <= MAX_MERGED_ACTORS
    if kinds or not is_merged:
        yield IndexRange([[*kinds, *span]], [build_actor_lookup(actor_conditions)])
    if is_merged:
        yield IndexRange([[Condition("actor_id = %s", (pk,)), *span] for pk in actor_ids], kinds)


def build_kind_conditions(filters: Filters) -> list[Condition]:
    return [Condition("kind = %s", (filters.kind.value,))] if filters.kind else []


def build_time_conditions(filters: Filters) -> list[Condition]:
    bounds = [("at >= %s", filters.since), ("at < %s", filters.until)]
    return [Condition(sql, (adapt(bound),)) for sql, bound in bounds if bound]


def build_actor_conditions(filters: Filters) -> list[Condition]:
    names = (filters.user, filters.app, filters.api_key, filters.source)
    conditions = [
        ("channel = %s", filters.channel),
        (f"%s IN ({', '.join(NAME_COLUMNS)})", filters.actor),
        *((f"{column} = %s", name) for column, name in zip(NAME_COLUMNS, names, strict=True)),
    ]
    return [Condition(sql, (value,)) for sql, value in conditions if value]


def build_actor_lookup(conditions: Sequence[Condition]) -> Condition:
    sql, parameters = select_actors(conditions)
    return Condition(f"actor_id IN ({sql})", parameters)


def select_actors(conditions: Sequence[Condition]) -> tuple[str, tuple[Any, ...]]:
    """Returns a statement for the ids of the actors that match, and its parameters."""
    sql, parameters = join_conditions(conditions)
    return f"SELECT id FROM books_actor WHERE {sql}", parameters


def fetch_rows(scan: IndexRange, order: Order, limit: int) -> list[Row]:
    """Fetches rows that match the whole scan, in the order of reading."""
    if not scan.rest:
        return fetch_all(*select_spans(scan, order, limit))
    sql, parameters = select_spans(scan, order, MAX_SCANNED_CHANGES)
    condition, rest_parameters = join_conditions(scan.rest)
    statement = f"SELECT {ENTRY_COLUMNS} FROM ({sql}) AS scanned WHERE {condition}{order.sql} LIMIT {limit}"
    return fetch_all(statement, [*parameters, *rest_parameters])


def find_range_end(scan: IndexRange, order: Order, rows: Sequence[Row]) -> Key | None:
    """Returns the key of the last change that a scan looked at, None if it looked at all.

    That change is never before the last row, although changes may have come since.
    """
    if not scan.rest:
        return None
    # An index by time has these columns.
    sql, parameters = select_spans(scan, order, 1, MAX_SCANNED_CHANGES - 1, columns="at, id")
    ends = [(to_datetime(at), pk) for at, pk in fetch_all(sql, parameters)]
    choose = max if order.start.backward else min
    return choose([*ends, *map(get_time_key, rows[-1:])]) if ends else None


def select_spans(
    scan: IndexRange, order: Order, limit: int, offset: int = 0, columns: str = ENTRY_COLUMNS
) -> tuple[str, list[Any]]:
    """Returns a statement for the changes of all spans, and its parameters."""
    conditions = [join_conditions(span) for span in scan.spans]
    selects = [f"SELECT {columns} FROM books_change{f' WHERE {sql}' if sql else ''}" for sql, _ in conditions]
    if len(selects) > 1:
        part = MERGED_PART[connection.vendor]
        selects = [part.format(select=select, order=order.sql, limit=limit + offset) for select in selects]
    parameters = list(chain.from_iterable(values for _, values in conditions))
    return f"{' UNION ALL '.join(selects)}{order.sql} LIMIT {limit} OFFSET {offset}", parameters


def join_conditions(conditions: Sequence[Condition]) -> tuple[str, tuple[Any, ...]]:
    parameters = tuple(chain.from_iterable(condition.parameters for condition in conditions))
    return " AND ".join(condition.sql for condition in conditions), parameters


def build_entries(page: Page[Row]) -> Page[Entry]:
    names = read_actor_names({row[5] for row in page.rows})
    return Page([build_entry(row, names) for row in page.rows], page.before, page.behind)


def build_entry(row: Row, names: dict[int, ActorNames]) -> Entry:
    pk, book_id, version, kind, at, actor_id, operation_id, before, after = row
    actor = names.get(actor_id, UNKNOWN_ACTOR)
    members = (text and msgspec.json.decode(text) for text in (before, after))
    return Entry(pk, book_id, version, Change.Kind(kind), to_datetime(at), actor, operation_id, *members)


def read_actor_names(pks: Iterable[int]) -> dict[int, ActorNames]:
    rows = Actor.objects.filter(pk__in=pks).values_list(*ACTOR_COLUMNS)
    return {pk: ActorNames(channel, *(name or None for name in names)) for pk, channel, *names in rows}


def get_version_key(row: Row) -> Key:
    return (row[2],)


def get_time_key(row: Row) -> Key:
    return to_datetime(row[4]), row[0]


def to_datetime(value: datetime | str) -> datetime:
    """SQLite has no type for times."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def adapt(value: Any) -> Any:
    """Returns a value as the database stores it."""
    return TIMESTAMP.get_db_prep_value(value, connection) if isinstance(value, datetime) else value
