"""Reads books without model objects: the columns to select and the JSON to send follow from a version's serializer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from itertools import starmap
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import msgspec
from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db.models import Expression, F, QuerySet
from rest_framework.fields import DateTimeField, Field
from rest_framework.serializers import Serializer

from books.fields import SelectedTimestamp
from books.models import Book
from books.rows import BookRow
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import PreparedStatement, Row, fetch_all

Column = Expression | F
# Fetches the rows of a statement.
FetchAll = Callable[[PreparedStatement, Sequence[Any]], list[Row]]
# From this offset on it is faster to find the first book of the page separately.
DEEP_OFFSET = 1_000
DEEP_OFFSET_SQL = "id >= (SELECT id FROM books_book ORDER BY id LIMIT 1 OFFSET %s)"
# Clients can ask for many different statements. This many of each kind are cached.
CACHED_STATEMENTS = 100


class BookQuery(NamedTuple):
    """Books that match a queryset and all `conditions`, each of which is SQL with the value of its parameter.

    Django needs longer to compile a condition than PostgreSQL to find the books.
    """

    books: QuerySet[Book]
    conditions: Sequence[tuple[str, str]] = ()

    def count_books(self) -> int:
        try:
            condition, parameters = self.compile()
        except EmptyResultSet:
            return 0
        [(count,)] = fetch_all(f"SELECT count(*) FROM books_book{condition}", parameters)  # noqa: S608  # our own SQL
        return int(count)

    def compile(self) -> tuple[str, Sequence[Any]]:
        """Returns the condition as SQL and its parameters. Raises EmptyResultSet."""
        condition, parameters = compile_condition(self.books)
        if not self.conditions:
            return condition, parameters
        texts = [*([condition.removeprefix(" WHERE ")] if condition else []), *(sql for sql, _ in self.conditions)]
        return f" WHERE {' AND '.join(texts)}", [*parameters, *(value for _, value in self.conditions)]


class Representation:
    """Books as rows, and as structs that msgspec encodes. The members are those of the serializer, in its order."""

    def __init__(self, serializer: type[Serializer[Book]], names: Collection[str] | None = None) -> None:
        fields = serializer().fields
        self.serializer = serializer
        self.fields = {name: field for name, field in fields.items() if names is None or name in names}
        self.members = list(self.fields)
        # Gives the members of a book, as `fetch_rows` returns them.
        self.to_row: Callable[[BookRow], Row] = attrgetter(*(str(field.source) for field in self.fields.values()))
        # Leaves out the extra columns of a row.
        self.select_members: Callable[[Row], Row] = itemgetter(slice(len(self.members)))
        self.columns = [select_column(field) for field in self.fields.values()]
        self.time_zones = {
            name: zone_suffix(field) for name, field in self.fields.items() if isinstance(field, DateTimeField)
        }
        self.struct = msgspec.defstruct(serializer.__name__, self.members, gc=False)
        # Clients can choose thousands of sets of members, too many for PostgreSQL to keep plans for.
        self.reuse_plan = names is None
        self.list_statements: dict[tuple[Any, ...], ListStatement] = {}
        self.make_partial = lru_cache(CACHED_STATEMENTS)(partial(Representation, serializer))

    def with_fields(self, names: Iterable[str]) -> "Representation":
        """Returns a representation with only these members, all of which exist."""
        return self.make_partial(frozenset(names))

    def select(self, books: QuerySet[Book], *extra_columns: Column) -> QuerySet[Book, Row]:
        """Selects the members and the extra columns as tuples."""
        return books.values_list(*self.columns, *extra_columns)

    def fetch_rows(self, selection: BookQuery, skip: int, limit: int, *extra_columns: Column) -> list[Row]:
        """Returns rows of the books. Each request compiles only the condition; the rest of the statement is cached."""
        try:
            condition, parameters = selection.compile()
        except EmptyResultSet:
            return []
        return self.get_list_statement(selection.books, extra_columns).fetch_rows(condition, parameters, skip, limit)

    def fetch_page(self, selection: BookQuery, skip: int, limit: int) -> list[msgspec.Struct]:
        """Returns structs of the books."""
        return self.to_structs(self.fetch_rows(selection, skip, limit))

    def get_list_statement(self, books: QuerySet[Book], extra_columns: tuple[Column, ...]) -> "ListStatement":
        key = (*books.query.order_by, *extra_columns)
        if key not in self.list_statements:
            sql, _ = self.select(Book.objects.order_by(*books.query.order_by), *extra_columns).query.sql_with_params()
            select_sql, keyword, order_sql = sql.partition(" ORDER BY ")
            self.list_statements[key] = ListStatement(
                select_sql, keyword + order_sql, is_by_id=key == ("pk",), reuse_plan=self.reuse_plan
            )
        return self.list_statements[key]

    def find_book(
        self, pk: int, fetch_all: FetchAll = PreparedStatement.fetch_all
    ) -> tuple[msgspec.Struct, int] | None:
        """Returns the struct of a book and its version."""
        rows = fetch_all(self.book_statement, (pk,)) if abs(pk) <= BIGINT_MAX else []
        return (self.to_structs(rows)[0], rows[0][-1]) if rows else None

    @cached_property
    def book_statement(self) -> PreparedStatement:
        sql, _ = self.select(Book.objects.filter(pk=0), F("version")).query.sql_with_params()
        return PreparedStatement(sql, self.reuse_plan)

    def to_structs(self, rows: Iterable[Row]) -> list[msgspec.Struct]:
        """Turns rows into structs, without the extra columns."""
        books = list(starmap(self.struct, map(self.select_members, rows)))
        for name, zone in self.time_zones.items():
            format_times(books, name, zone)
        return books

    def to_struct(self, book: BookRow) -> msgspec.Struct:
        [struct] = self.to_structs([self.to_row(book)])
        return struct


class ListStatement:
    """The statement of a list in one order, to which a condition can be added."""

    def __init__(self, select_sql: str, order_sql: str, is_by_id: bool, reuse_plan: bool) -> None:
        self.select_sql, self.page_sql = select_sql, f"{order_sql} LIMIT %s OFFSET %s"
        self.statement = PreparedStatement(f"{select_sql}{self.page_sql}", reuse_plan)
        # PostgreSQL skips the books before the page by reading only the index.
        deep_sql = f"{select_sql} WHERE {DEEP_OFFSET_SQL}{order_sql} LIMIT %s"
        self.deep_statement = PreparedStatement(deep_sql, reuse_plan) if is_by_id else None
        # Callers choose the members and the conditions; of all combinations there are too many.
        self.get_filtered_statement = lru_cache(CACHED_STATEMENTS if reuse_plan else 0)(self.build_filtered_statement)

    def fetch_rows(self, condition: str, parameters: Sequence[Any], skip: int, limit: int) -> list[Row]:
        """Returns the rows of one page. An empty condition matches all books."""
        if condition:
            return self.get_filtered_statement(condition).fetch_all((*parameters, limit, skip))
        if self.deep_statement and skip > DEEP_OFFSET:
            return self.deep_statement.fetch_all((skip, limit))
        return self.statement.fetch_all((limit, skip))

    def build_filtered_statement(self, condition: str) -> PreparedStatement:
        """PostgreSQL plans it anew each time, because a plan that is fast for one text is slow for another."""
        return PreparedStatement(f"{self.select_sql}{condition}{self.page_sql}", reuse_plan=False)


def format_times(books: Sequence[msgspec.Struct], name: str, zone: str) -> None:
    """Changes the times that msgspec would encode differently: it omits a fraction of zero, and a naive time's zone."""
    for book in books:
        time: datetime | str = getattr(book, name)
        # SQLite has formatted it already.
        if isinstance(time, datetime):
            if not time.microsecond:
                setattr(book, name, time.isoformat(timespec="microseconds") + zone)
            elif zone:
                # Four times as fast as `replace`.
                setattr(book, name, datetime.combine(time, time.time(), UTC))


def compile_condition(books: QuerySet[Book]) -> tuple[str, Sequence[Any]]:
    """Returns the condition of a queryset as SQL, and its parameters.

    Raises EmptyResultSet if it cannot match any book, such as a year that no column can hold.
    """
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
