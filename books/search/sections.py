"""Reads pages of books from several sections, each with its own order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet, Value

from books.fields import TimestampField, to_naive_utc
from books.models import FOLDED_COLUMNS, Book, sort_expression
from library_site.api.cursors import MAX_CURSOR_INTEGER, Cursor, CursorInteger, InvalidCursor
from library_site.db.keyset import Column, Key, Page, Start, build_condition, cut_page, order_by


class SortKey(NamedTuple):
    """The columns of an index, the last of which is the id. `parse` parses the first one from a cursor."""

    columns: tuple[Column, ...]
    parse: Callable[[object], Any]


def parse_number(value: object) -> int:
    """Seven times as fast as msgspec's check, and each page needs it twice."""
    if not isinstance(value, int) or abs(value) > MAX_CURSOR_INTEGER:
        raise InvalidCursor
    return value


def parse_text(value: object) -> str:
    # PostgreSQL rejects NUL, and all databases reject lone surrogates, for which `encode` raises ValueError.
    if not isinstance(value, str) or b"\0" in value.encode():
        raise InvalidCursor
    return value


def parse_timestamp(value: object) -> Value:
    timestamp = datetime.strptime(f"{parse_text(value)}Z", "%Y-%m-%dT%H:%M:%S.%f%z")
    return Value(timestamp, TimestampField())


SORT_KEYS = {
    "id": SortKey((F("id"),), parse_number),
    **{field: SortKey((sort_expression(field), F("id")), parse_text) for field in FOLDED_COLUMNS},
    "year": SortKey((F("year"), F("id")), parse_number),
    "isbn": SortKey((F("isbn"), F("id")), parse_text),
    "created_at": SortKey((F("created_at"), F("id")), parse_timestamp),
}


class Section(NamedTuple):
    """Books, and the name of their sort key, with a leading minus for descending order."""

    condition: Q
    sort: str = "-id"

    @property
    def key(self) -> str:
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.sort.startswith("-")


class Position(Cursor):
    max_length = 2_000

    section: int
    key: str | int
    pk: CursorInteger


def read_sections(books: QuerySet[Book], sections: Sequence[Section], limit: int, start: Start) -> Page[Book]:
    """Reads the sections one after the other, from the start or from the end. Takes at most one query per section.

    The keys have the fields of a Position. A book must not be in two sections.
    """
    found = chain.from_iterable(iter_sections(books, sections, limit + 1, start))
    page = cut_page(list(islice(found, limit + 1)), limit, start, itemgetter(0))
    return Page([book for _, book in page.rows], page.previous_key, page.next_key)


def find_start(books: QuerySet[Book], sections: Sequence[Section], offset: int) -> Start | None:
    """Returns the start of the page after the first `offset` books; None if there are no more books.

    The database counts along the indexes of the sections. A page with a number in its address starts here.
    """
    if not offset:
        return Start()
    for number, section in enumerate(sections):
        columns = SORT_KEYS[section.key].columns
        rows = books.filter(section.condition).annotate(sort_key=columns[0])
        last = rows.order_by(*order_by(columns, section.is_descending)).only("pk")[offset - 1 : offset].first()
        if last:
            return Start(build_key(number, last))
        offset -= rows.order_by().count()
    return None


def find_key(sections: Sequence[Section], pk: int) -> Key | None:
    """Returns the key of a book that is in one of the sections."""
    for number, section in enumerate(sections):
        rows = Book.objects.filter(section.condition, pk=pk).annotate(sort_key=SORT_KEYS[section.key].columns[0])
        if book := rows.only("pk").first():
            return build_key(number, book)
    return None


def iter_sections(
    books: QuerySet[Book], sections: Sequence[Section], limit: int, start: Start
) -> Iterator[list[tuple[Key, Book]]]:
    numbers = sorted(range(len(sections)), reverse=start.backward)
    first = numbers.index(start.key[0]) if start.key else 0
    for number in numbers[first:]:
        key = start.key if start.key and number == start.key[0] else None
        section = sections[number]
        rows = read_section(books, section, limit, key, start.backward)
        yield [(build_key(number, book), book) for book in rows]


def read_section(
    books: QuerySet[Book], section: Section, limit: int, start: Key | None, backward: bool
) -> Iterable[Any]:
    """Returns books with their `sort_key`."""
    descending, columns = section.is_descending != backward, SORT_KEYS[section.key].columns
    rows = books.filter(section.condition)
    if start:
        rows = rows.filter(build_beyond_condition(section.key, *start[1:], descending=descending))
    return rows.annotate(sort_key=columns[0]).order_by(*order_by(columns, descending))[:limit]


def build_beyond_condition(name: str, key: Any, pk: int, *, descending: bool) -> Q:
    """Returns the condition for books after a cursor's key and id, in this direction."""
    columns, parse = SORT_KEYS[name]
    return build_condition(columns, (parse(key), pk)[-len(columns) :], descending)


def build_key(number: int, book: Any) -> Key:
    key = book.sort_key
    return number, to_naive_utc(key).isoformat(timespec="microseconds") if isinstance(key, datetime) else key, book.pk


def parse_position(text: str, sections: Sequence[Section]) -> Key | None:
    """Returns None if the text is not a position in these sections."""
    try:
        position = Position.decode(text)
        SORT_KEYS[sections[position.section].key].parse(position.key)
    except (ValueError, IndexError):
        return None
    return position.to_key() if position.section >= 0 else None
