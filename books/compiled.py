"""The read path: what a version shows of a book, as columns to select and JSON to send, derived from its serializer."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Expression, F, QuerySet
from rest_framework.serializers import Serializer

from books.fields import TimestampField, WireTime, naive_utc
from books.integers import LARGEST
from books.models import Book

Row = tuple[Any, ...]


class Representation:
    """Rows instead of model instances, and one encoder for them: the members are the serializer's, in its order."""

    def __init__(self, serializer: type[Serializer[Book]]) -> None:
        self.members = list(serializer().fields)
        self.columns = [column(member) for member in self.members]
        self.struct = msgspec.defstruct(serializer.__name__, self.members)
        self.encode = msgspec.json.Encoder().encode
        self.frames: dict[tuple[Any, ...], tuple[str, str]] = {}

    def select(self, books: QuerySet[Book], *more: str) -> QuerySet[Book, Row]:
        """The books as tuples of the members, then of `more` columns."""
        return books.values_list(*self.columns, *more)

    def page(self, books: QuerySet[Book], skip: int, limit: int) -> list[Row]:
        """Some of the books. Of a statement only the condition is compiled for every request."""
        selected, order = self.frame(books)
        condition, parameters = compiled_condition(books)
        return fetched(f"{selected}{condition}{order} LIMIT %s OFFSET %s", (*parameters, limit, skip))

    def frame(self, books: QuerySet[Book]) -> tuple[str, str]:
        """The statement before and after its condition, the same for every list in one order."""
        order = tuple(books.query.order_by)
        if order not in self.frames:
            sql, _ = self.select(Book.objects.order_by(*order)).query.sql_with_params()
            selected, by, ordered = sql.partition(" ORDER BY ")
            self.frames[order] = selected, by + ordered
        return self.frames[order]

    def find(self, pk: int) -> tuple[Row, int] | None:
        """A book and its version."""
        found = fetched(self.one_book, (pk,)) if abs(pk) <= LARGEST else []
        return (found[0][:-1], found[0][-1]) if found else None

    @cached_property
    def one_book(self) -> str:
        sql, _ = self.select(Book.objects.filter(pk=0), "version").query.sql_with_params()
        return sql

    def row(self, book: Book) -> Row:
        """A book at hand as `page` and `find` would give it."""
        return tuple(wire(getattr(book, member)) for member in self.members)

    def one(self, row: Row) -> bytes:
        return self.encode(self.struct(*row))

    def many(self, rows: Iterable[Row]) -> bytes:
        return self.encode([self.struct(*row) for row in rows])


def compiled_condition(books: QuerySet[Book]) -> tuple[str, Sequence[Any]]:
    if not books.query.where:
        return "", ()
    sql, parameters = books.query.get_compiler(books.db).compile(books.query.where)
    return f" WHERE {sql}", parameters


def fetched(sql: str, parameters: Sequence[Any]) -> list[Row]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows


def column(member: str) -> Expression | F:
    return WireTime(member) if isinstance(Book._meta.get_field(member), TimestampField) else F(member)


def wire(value: object) -> object:
    """A value as WireTime shows it; only times change."""
    if isinstance(value, datetime):
        return naive_utc(value).isoformat(timespec="microseconds")
    return value
