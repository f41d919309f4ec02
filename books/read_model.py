"""The read path: what a version shows of a book, as columns to select and JSON to send, derived from its serializer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Any

import msgspec
from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import Expression, F, QuerySet
from rest_framework.fields import DateTimeField, Field
from rest_framework.serializers import Serializer

from books.fields import SelectedTimestamp
from books.models import Book
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import PreparedStatement, Row

Column = Expression | F
# From here on it pays to look for the first book by itself.
DEEP_OFFSET = 1_000
DEEP_OFFSET_SQL = "id >= (SELECT id FROM books_book ORDER BY id LIMIT 1 OFFSET %s)"
# Of what clients choose among, how much is kept ready.
CACHED_STATEMENTS = 100


class Representation:
    """Rows instead of model instances, and one encoder for them: the members are the serializer's, in its order."""

    def __init__(self, serializer: type[Serializer[Book]], names: Collection[str] | None = None) -> None:
        fields = serializer().fields
        self.serializer = serializer
        self.fields = {name: field for name, field in fields.items() if names is None or name in names}
        self.members = list(self.fields)
        # A book at hand as `page` would give it.
        self.to_row: Callable[[Book], Row] = attrgetter(*(str(field.source) for field in self.fields.values()))
        self.columns = [select_column(field) for field in self.fields.values()]
        self.times = [(name, zone_suffix(one)) for name, one in self.fields.items() if isinstance(one, DateTimeField)]
        self.struct = msgspec.defstruct(serializer.__name__, self.members, gc=False)
        # Clients choose among thousands of parts: PostgreSQL need not keep plans for all of them.
        self.keep_plan = names is None
        self.frames: dict[tuple[Any, ...], ListStatement] = {}
        self.part_of = lru_cache(CACHED_STATEMENTS)(partial(Representation, serializer))

    def with_fields(self, names: Iterable[str]) -> "Representation":
        """Some of the members, which there are."""
        return self.part_of(frozenset(names))

    def select(self, books: QuerySet[Book], *more: Column) -> QuerySet[Book, Row]:
        """The books as tuples of the members, then of `more` columns."""
        return books.values_list(*self.columns, *more)

    def fetch_rows(self, books: QuerySet[Book], skip: int, limit: int, *more: Column) -> list[Row]:
        """Some of the books. Of a statement only the condition is compiled for every request."""
        try:
            condition, parameters = compile_condition(books)
        except EmptyResultSet:
            return []
        return self.list_statement(books, more).rows(condition, parameters, skip, limit)

    def fetch_page(self, books: QuerySet[Book], skip: int, limit: int) -> list[msgspec.Struct]:
        """Some of the books, ready to be encoded."""
        return self.to_structs(self.fetch_rows(books, skip, limit))

    def fetch_matching(
        self, books: QuerySet[Book], conditions: Sequence[tuple[str, str]], skip: int, limit: int
    ) -> list[msgspec.Struct]:
        """Some of the books that meet all of these conditions, each given as SQL with the value for it."""
        where = " AND ".join(sql for sql, _ in conditions)
        values = [value for _, value in conditions]
        return self.to_structs(self.list_statement(books, ()).rows(where and f" WHERE {where}", values, skip, limit))

    def list_statement(self, books: QuerySet[Book], more: tuple[Column, ...]) -> "ListStatement":
        shape = (*books.query.order_by, *more)
        if shape not in self.frames:
            sql, _ = self.select(Book.objects.order_by(*books.query.order_by), *more).query.sql_with_params()
            selected, by, ordered = sql.partition(" ORDER BY ")
            self.frames[shape] = ListStatement(selected, by + ordered, shape == ("pk",), self.keep_plan)
        return self.frames[shape]

    def find(self, pk: int) -> tuple[msgspec.Struct, int] | None:
        """A book, ready to be encoded, and its version."""
        found = self.one_book.fetch_all((pk,)) if abs(pk) <= BIGINT_MAX else []
        return (self.to_structs(found)[0], found[0][-1]) if found else None

    @cached_property
    def one_book(self) -> PreparedStatement:
        sql, _ = self.select(Book.objects.filter(pk=0), F("version")).query.sql_with_params()
        return PreparedStatement(sql, self.keep_plan)

    def to_structs(self, rows: Iterable[Row]) -> list[msgspec.Struct]:
        """Rows, of which columns after the members are left out, ready to be encoded."""
        width, struct = len(self.members), self.struct
        books = [struct(*row[:width]) for row in rows]
        for name, ending in self.times:
            format_times(books, name, ending)
        return books

    def to_struct(self, book: Book) -> msgspec.Struct:
        [shown] = self.to_structs([self.to_row(book)])
        return shown


class ListStatement:
    """The statement of a list but for its condition, the same for all in one order."""

    def __init__(self, selected: str, order: str, by_id: bool, keep_plan: bool) -> None:
        self.selected, self.ordered = selected, f"{order} LIMIT %s OFFSET %s"
        self.whole = PreparedStatement(f"{selected}{self.ordered}", keep_plan)
        # Of the books before them, PostgreSQL reads the index alone.
        self.deep = (
            PreparedStatement(f"{selected} WHERE {DEEP_OFFSET_SQL}{order} LIMIT %s", keep_plan) if by_id else None
        )
        self.where = lru_cache(CACHED_STATEMENTS)(self.with_condition)

    def rows(self, condition: str, parameters: Sequence[Any], skip: int, limit: int) -> list[Row]:
        """Some of the books; of all where the condition is empty."""
        if condition:
            return self.where(condition).fetch_all((*parameters, limit, skip))
        if self.deep and skip > DEEP_OFFSET:
            return self.deep.fetch_all((skip, limit))
        return self.whole.fetch_all((limit, skip))

    def with_condition(self, condition: str) -> PreparedStatement:
        """Planned each time: what suits one text does not suit another."""
        return PreparedStatement(f"{self.selected}{condition}{self.ordered}", keep_plan=False)


def format_times(books: Sequence[msgspec.Struct], name: str, ending: str) -> None:
    """Helps where msgspec would write a time otherwise: it leaves out a fraction of none, and knows naive ones."""
    for book in books:
        time: datetime | str = getattr(book, name)
        if isinstance(time, str):
            continue
        if not time.microsecond:
            setattr(book, name, time.isoformat(timespec="microseconds") + ending)
        elif ending:
            setattr(book, name, time.replace(tzinfo=UTC))


def compile_condition(books: QuerySet[Book]) -> tuple[str, Sequence[Any]]:
    """Raises EmptyResultSet where it can match nothing, such as a year that no column holds."""
    if not books.query.where:
        return "", ()
    try:
        sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    except FullResultSet:
        return "", ()
    return f" WHERE {sql}", parameters


def select_column(field: Field[Any, Any, Any, Any]) -> Column:
    source = str(field.source)
    return SelectedTimestamp(source, zone_suffix(field)) if isinstance(field, DateTimeField) else F(source)


def zone_suffix(field: Field[Any, Any, Any, Any]) -> str:
    return "Z" if str(getattr(field, "format", "")).endswith("Z") else ""
