"""The read path: what a version shows of a book, as columns to select and JSON to send, derived from its serializer."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
from django.db import connection
from django.db.models import Expression, F, QuerySet
from rest_framework.serializers import Serializer

from books.fields import TimestampField, WireTime
from books.models import Book

Row = tuple[Any, ...]


class Representation:
    """Rows instead of model instances, and one encoder for them: the members are the serializer's, in its order."""

    def __init__(self, serializer: type[Serializer[Book]]) -> None:
        self.members = list(serializer().fields)
        self.columns = [column(member) for member in self.members]
        self.struct = msgspec.defstruct(serializer.__name__, self.members)
        self.encode = msgspec.json.Encoder().encode
        self.unfiltered: dict[tuple[Any, ...], str] = {}

    def select(self, books: QuerySet[Book], *more: str) -> QuerySet[Book, Row]:
        """The books as tuples of the members, then of `more` columns."""
        return books.values_list(*self.columns, *more)

    def page(self, books: QuerySet[Book], skip: int, limit: int) -> list[Row]:
        """Some of the books. Without a filter the statement is always the same, and compiled once an order."""
        if books.query.where:
            sql, parameters = self.statement(books)
        else:
            order = tuple(books.query.order_by)
            sql, parameters = (
                self.unfiltered.get(order) or self.unfiltered.setdefault(order, self.statement(books)[0]),
                (),
            )
        return fetched(f"{sql} LIMIT %s OFFSET %s", (*parameters, limit, skip))

    def find(self, pk: int) -> tuple[Row, int] | None:
        """A book and its version."""
        found = fetched(self.one_book, (pk,))
        return (found[0][:-1], found[0][-1]) if found else None

    def row(self, book: Book) -> Row:
        """A book at hand as `page` and `find` would give it."""
        return tuple(wire(getattr(book, member)) for member in self.members)

    def one(self, row: Row) -> bytes:
        return self.encode(self.struct(*row))

    def many(self, rows: Iterable[Row]) -> bytes:
        return self.encode([self.struct(*row) for row in rows])

    @cached_property
    def one_book(self) -> str:
        return self.statement(Book.objects.filter(pk=0), "version")[0]

    def statement(self, books: QuerySet[Book], *more: str) -> tuple[str, tuple[Any, ...]]:
        """SQL of the columns, then of `more`, and its parameters."""
        sql, parameters = self.select(books, *more).query.sql_with_params()
        return sql, parameters


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
        naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return naive.isoformat(timespec="microseconds")
    return value
