"""The read path: what a version shows of a book, as columns to select and JSON to send, derived from its serializer."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
import psycopg
from django.core.exceptions import EmptyResultSet, FullResultSet
from django.db import connection
from django.db.models import Expression, F, QuerySet
from django.http import HttpResponse
from rest_framework.fields import DateTimeField, Field
from rest_framework.serializers import Serializer

from books.fields import WireTime, naive_utc
from books.integers import LARGEST
from books.models import Book

Row = tuple[Any, ...]
Column = Expression | F
encode = msgspec.json.Encoder().encode


class Representation:
    """Rows instead of model instances, and one encoder for them: the members are the serializer's, in its order."""

    def __init__(self, serializer: type[Serializer[Book]], names: Collection[str] | None = None) -> None:
        fields = serializer().fields
        self.serializer = serializer
        self.fields = {name: field for name, field in fields.items() if names is None or name in names}
        self.members = list(self.fields)
        self.columns = [column(field) for field in self.fields.values()]
        self.struct = msgspec.defstruct(serializer.__name__, self.members)
        self.frames: dict[tuple[Any, ...], tuple[str, str]] = {}
        self.parts: dict[frozenset[str], Representation] = {}

    def only(self, names: Iterable[str]) -> "Representation":
        """Some of the members, which there are."""
        chosen = frozenset(names)
        if chosen not in self.parts:
            self.parts[chosen] = Representation(self.serializer, chosen)
        return self.parts[chosen]

    def select(self, books: QuerySet[Book], *more: Column) -> QuerySet[Book, Row]:
        """The books as tuples of the members, then of `more` columns."""
        return books.values_list(*self.columns, *more)

    def page(self, books: QuerySet[Book], skip: int, limit: int, *more: Column) -> list[Row]:
        """Some of the books. Of a statement only the condition is compiled for every request."""
        selected, order = self.frame(books, more)
        try:
            condition, parameters = compiled_condition(books)
        except EmptyResultSet:
            return []
        return fetched(f"{selected}{condition}{order} LIMIT %s OFFSET %s", (*parameters, limit, skip))

    def part(self, books: QuerySet[Book], skip: int, limit: int) -> list[msgspec.Struct]:
        """Some of the books, ready to be encoded."""
        return [self.shown(row) for row in self.page(books, skip, limit)]

    def frame(self, books: QuerySet[Book], more: tuple[Column, ...]) -> tuple[str, str]:
        """The statement before and after its condition, the same for every list in one order; without parameters."""
        shape = (*books.query.order_by, *more)
        if shape not in self.frames:
            sql, _ = self.select(Book.objects.order_by(*books.query.order_by), *more).query.sql_with_params()
            selected, by, ordered = sql.partition(" ORDER BY ")
            self.frames[shape] = selected, by + ordered
        return self.frames[shape]

    def find(self, pk: int) -> tuple[Row, int] | None:
        """A book and its version."""
        found = prepared(self.one_book, (pk,)) if abs(pk) <= LARGEST else []
        return (found[0][:-1], found[0][-1]) if found else None

    @cached_property
    def one_book(self) -> str:
        sql, _ = self.select(Book.objects.filter(pk=0), F("version")).query.sql_with_params()
        return sql

    def row(self, book: Book) -> Row:
        """A book at hand as `page` and `find` would give it."""
        return tuple(wire(field, book) for field in self.fields.values())

    def shown(self, row: Row) -> msgspec.Struct:
        """A row, of which columns after the members are left out, ready to be encoded."""
        return self.struct(*row[: len(self.members)])


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(encode(content), "application/json", status, headers=headers)


def compiled_condition(books: QuerySet[Book]) -> tuple[str, Sequence[Any]]:
    """Raises EmptyResultSet where it can match nothing, such as a year that no column holds."""
    if not books.query.where:
        return "", ()
    try:
        sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    except FullResultSet:
        return "", ()
    return f" WHERE {sql}", parameters


def fetched(sql: str, parameters: Sequence[Any]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


def prepared(sql: str, parameters: Sequence[Any]) -> list[Row]:
    """As `fetched`, of a statement that PostgreSQL plans once a connection: half of what a book by id costs it."""
    if connection.vendor != "postgresql" or not connection.get_autocommit():
        return fetched(sql, parameters)
    connection.ensure_connection()
    kept = connection.connection
    # For this one alone: Django's cursors, which put their values in, would prepare whatever they ask.
    kept.prepare_threshold = 0
    try:
        with connection.wrap_database_errors, psycopg.Cursor(kept) as cursor:
            return cursor.execute(sql, parameters, prepare=True).fetchall()
    finally:
        kept.prepare_threshold = None


def column(field: Field[Any, Any, Any, Any]) -> Column:
    source = str(field.source)
    return WireTime(source, zone(field)) if isinstance(field, DateTimeField) else F(source)


def wire(field: Field[Any, Any, Any, Any], book: Book) -> object:
    """A book's value as its column shows it; only times change."""
    value = getattr(book, str(field.source))
    if isinstance(value, datetime):
        return naive_utc(value).isoformat(timespec="microseconds") + zone(field)
    return value


def zone(field: Field[Any, Any, Any, Any]) -> str:
    return "Z" if str(getattr(field, "format", "")).endswith("Z") else ""
