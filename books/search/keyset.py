"""Reads pages of books, whose positions are keys and not numbers: the last page costs as much as the first."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple

from django.db.models import F, Func, OrderBy, Q, QuerySet, Value
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from books.fields import TimestampField
from books.models import FOLDED_COLUMNS, Book, sort_expression
from library_site.api.cursors import Cursor, InvalidCursor
from library_site.db.integers import BIGINT_MAX

MAX_POSITION_LENGTH = 2_000


class SortKey(NamedTuple):
    """A key of an index, behind which the index has the id. `parse` reads it from a cursor."""

    expression: F | Func
    parse: Callable[[object], Any]


def parse_bigint(value: object) -> int:
    if not isinstance(value, int) or abs(value) > BIGINT_MAX:
        raise InvalidCursor
    return value


def parse_text(value: object) -> str:
    # PostgreSQL refuses NUL, and all databases refuse lone surrogates, for which `encode` raises ValueError.
    if not isinstance(value, str) or b"\0" in value.encode():
        raise InvalidCursor
    return value


def parse_timestamp(value: object) -> Value:
    timestamp = datetime.strptime(parse_text(value), "%Y-%m-%dT%H:%M:%S.%f")  # noqa: DTZ007  # the column is naive, too
    return Value(timestamp, TimestampField())


SORT_KEYS = {
    "id": SortKey(F("id"), parse_bigint),
    **{member: SortKey(sort_expression(member), parse_text) for member in FOLDED_COLUMNS},
    "year": SortKey(F("year"), parse_bigint),
    "isbn": SortKey(F("isbn"), parse_text),
    "created_at": SortKey(F("created_at"), parse_timestamp),
}


class Section(NamedTuple):
    """Books, and the name of the key that sorts them, with a minus in front if descending."""

    condition: Q
    sort: str = "-id"

    @property
    def key(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")


class Position(Cursor):
    """A book's place in a list of sections."""

    section: int
    key: str | int
    pk: int


class Page(NamedTuple):
    """Books, and the positions before and behind which others go on, None if there are none."""

    books: list[Book]
    before: Position | None
    behind: Position | None


def read_page(
    books: QuerySet[Book],
    sections: Sequence[Section],
    limit: int,
    start: Position | None = None,
    backward: bool = False,
) -> Page:
    """Reads the sections one behind the other, from the start or from the end. Takes a query a section at most.

    No book may be in two sections.
    """
    found = chain.from_iterable(iter_sections(books, sections, limit + 1, start, backward))
    positioned = list(islice(found, limit + 1))
    has_more, positioned = len(positioned) > limit, positioned[:limit][:: -1 if backward else 1]
    positions = [position for position, _ in positioned]
    has_others_before, has_others_behind = (has_more, bool(start)) if backward else (bool(start), has_more)
    return Page(
        [book for _, book in positioned],
        positions[0] if positions and has_others_before else None,
        positions[-1] if positions and has_others_behind else None,
    )


def iter_sections(
    books: QuerySet[Book], sections: Sequence[Section], limit: int, start: Position | None, backward: bool
) -> Iterator[list[tuple[Position, Book]]]:
    for number in sorted(range(len(sections)), reverse=backward):
        if start and (number > start.section if backward else number < start.section):
            continue
        section = sections[number]
        is_start = start is not None and number == start.section
        rows = read_section(books, section, limit, start if is_start else None, backward)
        yield [(build_position(number, section, book), book) for book in rows]


def read_section(
    books: QuerySet[Book], section: Section, limit: int, start: Position | None, backward: bool
) -> Iterable[Any]:
    """Returns books with their `sort_key`."""
    descending, (key, parse) = section.is_descending != backward, SORT_KEYS[section.key]
    rows = books.filter(section.condition)
    if start:
        rows = rows.filter(build_after_condition(section.key, parse(start.key), start.pk, descending))
    return rows.annotate(sort_key=key).order_by(*order_by(section.key, descending))[:limit]


def order_by(name: str, descending: bool) -> tuple[OrderBy, ...]:
    keys = [F("id")] if name == "id" else [SORT_KEYS[name].expression, F("id")]
    return tuple(OrderBy(key, descending=descending) for key in keys)


def build_after_condition(name: str, key: Any, pk: int, descending: bool) -> Q:
    """The books behind a key and an id, in this direction."""
    if name == "id":
        return Q(id__lt=pk) if descending else Q(id__gt=pk)
    expression = SORT_KEYS[name].expression
    lookup, key_lookup = (TupleLessThan, LessThanOrEqual) if descending else (TupleGreaterThan, GreaterThanOrEqual)
    # SQLite can use an index only for a condition on the key alone.
    return Q(key_lookup(expression, key)) & Q(lookup(Tuple(expression, F("id")), (key, pk)))


def build_position(number: int, section: Section, book: Any) -> Position:
    key = book.sort_key
    is_time = isinstance(key, datetime)
    return Position(number, key.isoformat(timespec="microseconds") if is_time else key, book.pk)


def parse_position(text: str, sections: Sequence[Section]) -> Position | None:
    """Returns None for a text that is no position in these sections."""
    try:
        position = Position.decode(text, MAX_POSITION_LENGTH)
        SORT_KEYS[sections[position.section].key].parse(position.key)
        parse_bigint(position.pk)
    except (ValueError, IndexError):
        return None
    return position if position.section >= 0 else None
