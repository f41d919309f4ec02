"""Reads pages of the history, newest first, without counting: the database reads an index up to the limit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from rest_framework.serializers import Serializer

from books.fields import adapt_time, to_naive_utc
from books.history.loans import build_loan_condition
from books.models import Actor, Book, Change
from books.read_model import format_time, show_stored
from library_site.api.cursors import Cursor, CursorInteger, CursorTime
from library_site.db.keyset import Key, Order, Page, Start, cut_page
from library_site.db.sql import Row

# If at most so many actors match, each has its own query on its index. A user has an actor per channel, app and key.
MAX_QUERIED_ACTORS = 10
# An iteration holds so many changes in memory.
ITERATION_PAGE = 1_000
# The kinds of changes by their names in addresses.
CHANGE_KINDS = {kind.label: kind for kind in Change.Kind}
ENTRY_COLUMNS = ("id", "book_id", "version", "kind", "at", "actor_id", "operation_id", "before", "after")
NAME_COLUMNS = ("user_name", "app_name", "api_key_name", "source_name")
# Of the changes of all books.
TIME_CURSOR = Cursor(bool, CursorTime, CursorInteger)


def adapt_key(key: Key) -> Key:
    return tuple(adapt_time(value) if isinstance(value, datetime) else value for value in key)


BY_TIME, BY_VERSION, BY_ID = Order(F("at"), F("id"), adapt=adapt_key), Order(F("version")), Order(F("id"))


class ActorNames(NamedTuple):
    """The channel of a change, and the names of its actor; None where there is no name."""

    channel: str
    user: str | None
    app: str | None
    api_key: str | None
    source: str | None

    @classmethod
    def build(cls, channel: str, *names: str) -> "ActorNames":
        """Takes the values of NAME_COLUMNS, which are empty where there is no name."""
        return cls(channel, *(name or None for name in names))

    @property
    def first_name(self) -> tuple[str, str]:
        """The field and the value of the first name, or of the channel if there is none."""
        names = ((field, name) for field, name in zip(self._fields[1:], self[1:], strict=True) if name)
        return next(names, ("channel", self.channel))


# After a restored backup, a process may have cached actors that the database does not have.
UNKNOWN_ACTOR = ActorNames(Actor.Channel.COMMAND, None, None, None, None)


class Entry(NamedTuple):
    """A change of a book. `at` is in UTC."""

    id: int
    book_id: int
    version: int
    kind: Change.Kind
    at: datetime
    actor: ActorNames
    operation_id: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def to_document(self, serializer: type[Serializer[Book]]) -> dict[str, Any]:
        """Returns the change as version 2 and exports of personal data show it, with these fields."""
        channel, *names = self.actor
        return {
            "version": self.version,
            "kind": self.kind.label,
            "at": format_time(self.at),
            "channel": channel,
            "actor": dict(zip(ActorNames._fields[1:], names, strict=True)),
            "operation": self.operation_id,
            "before": show_stored(serializer, self.before),
            "after": self.after if self.kind is Change.Kind.MERGED else show_stored(serializer, self.after),
        }


class Filters(NamedTuple):
    """Filters of changes: names (`actor` matches any of them), a channel, a kind, an operation, and a period that
    includes `since` and excludes `until`. `loan` is one of books.history.loans.
    """

    actor: str = ""
    user: str = ""
    app: str = ""
    api_key: str = ""
    source: str = ""
    channel: str = ""
    kind: Change.Kind | None = None
    loan: str = ""
    operation: int | None = None
    since: datetime | None = None
    until: datetime | None = None


def read_book_page(book_id: int, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of a book, which may be deleted."""
    return read_entries([Q(book_id=book_id)], BY_VERSION, start, limit)


def read_recent_page(filters: Filters, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes of all books, sorted by id. The changes of one operation have ascending ids."""
    return read_entries(list_conditions(filters), BY_TIME if filters.operation is None else BY_ID, start, limit)


def read_deleted_page(start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the deletions of books that are still deleted. A book with a later change was restored."""
    later_changes = Change.objects.filter(book_id=OuterRef("book_id"), version__gt=OuterRef("version"))
    return read_entries([Q(~Exists(later_changes), kind=Change.Kind.DELETED)], BY_TIME, start, limit)


def list_conditions(filters: Filters) -> list[Q]:
    """Returns a condition for each actor if there are few, else one condition for all of them."""
    values = {"kind": filters.kind, "operation": filters.operation, "at__gte": filters.since, "at__lt": filters.until}
    condition = Q(**{name: value for name, value in values.items() if value is not None})
    if filters.loan:
        condition &= build_loan_condition(filters.loan)
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


def read_entries(conditions: Sequence[Q], order: Order, start: Start, limit: int) -> Page[Entry]:
    """Returns a page of the changes that match any of these conditions, with one query for each."""
    get_key = get_version_key if order is BY_VERSION else get_time_key
    # SQLite uses the first of two bounds on a column for its index, and the bound of the cursor excludes more rows.
    changes = order.sort(Change.objects.all(), start, descending=True)
    rows = [row for condition in conditions for row in read_rows(changes.filter(condition)[: limit + 1])]
    if len(conditions) > 1:
        rows = sorted(rows, key=get_key, reverse=not start.backward)[: limit + 1]
    return build_page(rows, limit, start, get_key)


def read_rows(changes: QuerySet[Change]) -> list[Row]:
    return list(changes.values_list(*ENTRY_COLUMNS))


def build_page(rows: list[Row], limit: int, start: Start, get_key: Callable[[Row], Key]) -> Page[Entry]:
    page = cut_page(rows, limit, start, get_key, descending=True)
    names = read_actor_names({row[5] for row in page.rows})
    return Page([build_entry(row, names) for row in page.rows], page.previous_key, page.next_key)


def iter_actor_entries(actor_id: int) -> Iterator[Entry]:
    """Yields all changes of an actor, oldest first, without loading all of them into memory."""
    start = Start(backward=True)
    while True:
        page = read_entries([Q(actor=actor_id)], BY_TIME, start, ITERATION_PAGE)
        yield from reversed(page.rows)
        if page.previous_key is None:
            return
        start = Start(page.previous_key, backward=True)


def build_entry(row: Row, names: dict[int, ActorNames]) -> Entry:
    pk, book_id, version, kind, at, actor_id, *others = row
    return Entry(pk, book_id, version, Change.Kind(kind), at, names.get(actor_id, UNKNOWN_ACTOR), *others)


def read_actor_names(pks: Iterable[int]) -> dict[int, ActorNames]:
    rows = Actor.objects.filter(pk__in=pks).values_list("id", "channel", *NAME_COLUMNS)
    return {pk: ActorNames.build(*names) for pk, *names in rows}


def get_version_key(row: Row) -> Key:
    return (row[2],)


def get_time_key(row: Row) -> Key:
    return to_naive_utc(row[4]), row[0]
