"""Reads pages of the history, newest first, without counting: the database walks an index, and stops at the limit."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, Value

from books.fields import TimestampField
from books.models import Actor, Change
from library_site.db.keyset import Key, Page, Start, build_condition, cut_page, order_by
from library_site.db.sql import Row

# Each of so few actors has a query of its own, along its index. A person has an actor for each channel, app and key.
MAX_QUERIED_ACTORS = 10
# The number of changes that an iteration holds in memory.
ITERATION_PAGE = 1_000
# By the names that addresses have.
CHANGE_KINDS = {kind.label: kind for kind in Change.Kind}
ENTRY_COLUMNS = ("id", "book_id", "version", "kind", "at", "actor_id", "operation_id", "before", "after")
NAME_COLUMNS = ("user_name", "app_name", "api_key_name", "source_name")
BY_TIME, BY_VERSION, BY_ID = ("at", "id"), ("version",), ("id",)


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


def read_book_page(book_id: int, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of a book, which may be deleted."""
    return read_entries([Q(book_id=book_id)], BY_VERSION, start, limit)


def read_recent_page(filters: Filters, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of all books. An operation makes one after the other, so ids have their order."""
    return read_entries(list_conditions(filters), BY_TIME if filters.operation is None else BY_ID, start, limit)


def read_deleted_page(start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the deletions of books that are still deleted: a book with a later change was restored."""
    later_changes = Change.objects.filter(book_id=OuterRef("book_id"), version__gt=OuterRef("version"))
    return read_entries([Q(~Exists(later_changes), kind=Change.Kind.DELETED)], BY_TIME, start, limit)


def list_conditions(filters: Filters) -> list[Q]:
    """Returns the conditions of the changes of each actor, if these are few, else of all together."""
    values = {"kind": filters.kind, "operation": filters.operation, "at__gte": filters.since, "at__lt": filters.until}
    condition = Q(**{name: value for name, value in values.items() if value is not None})
    actor_condition = build_actor_condition(filters)
    if not actor_condition:
        return [condition]
    actors = Actor.objects.filter(actor_condition)
    pks = list(actors.values_list("pk", flat=True)[: MAX_QUERIED_ACTORS + 1])
    if filters.operation is None and len(pks) <= MAX_QUERIED_ACTORS:
        return [condition & Q(actor=pk) for pk in pks]
    return [condition & Q(Exists(actors.filter(pk=OuterRef("actor_id"))))]


def build_actor_condition(filters: Filters) -> Q:
    names = (filters.user, filters.app, filters.api_key, filters.source)
    columns = {"channel": filters.channel, **dict(zip(NAME_COLUMNS, names, strict=True))}
    condition = Q(**{column: value for column, value in columns.items() if value})
    if filters.actor:
        condition &= Q(*((column, filters.actor) for column in NAME_COLUMNS), _connector=Q.OR)
    return condition


def read_entries(conditions: Sequence[Q], order: Sequence[str], start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes that match any of these conditions, each of which is a query."""
    columns, descending = [F(name) for name in order], not start.backward
    get_key = get_version_key if order == BY_VERSION else get_time_key
    beyond = build_condition(columns, adapt_key(start.key)[-len(columns) :], descending) if start.key else Q()
    changes = Change.objects.order_by(*order_by(columns, descending)).values_list(*ENTRY_COLUMNS)
    # Of two bounds of a column SQLite takes the first for its index, and that of the key is the closer one.
    rows: list[Row] = [row for condition in conditions for row in changes.filter(beyond & condition)[: limit + 1]]
    if len(conditions) > 1:
        rows = sorted(rows, key=get_key, reverse=descending)[: limit + 1]
    page = cut_page(rows, limit, start, get_key)
    names = read_actor_names({row[5] for row in page.rows})
    return Page([build_entry(row, names) for row in page.rows], page.before, page.behind)


def adapt_key(key: Key) -> Key:
    """Django knows a naive time as that of a TimestampField alone."""
    return tuple(Value(value, TimestampField()) if isinstance(value, datetime) else value for value in key)


def iter_actor_entries(actor_id: int) -> Iterator[Entry]:
    """Yields all changes of an actor, the oldest first. They are never all in memory."""
    start = Start(backward=True)
    while True:
        page = read_entries([Q(actor=actor_id)], BY_TIME, start, ITERATION_PAGE)
        yield from reversed(page.rows)
        if page.before is None:
            return
        start = Start(page.before, backward=True)


def build_entry(row: Row, names: dict[int, ActorNames]) -> Entry:
    pk, book_id, version, kind, at, actor_id, *others = row
    return Entry(pk, book_id, version, Change.Kind(kind), at, names.get(actor_id, UNKNOWN_ACTOR), *others)


def read_actor_names(pks: Iterable[int]) -> dict[int, ActorNames]:
    rows = Actor.objects.filter(pk__in=pks).values_list("id", "channel", *NAME_COLUMNS)
    return {pk: ActorNames(channel, *(name or None for name in names)) for pk, channel, *names in rows}


def get_version_key(row: Row) -> Key:
    return (row[2],)


def get_time_key(row: Row) -> Key:
    return row[4], row[0]
