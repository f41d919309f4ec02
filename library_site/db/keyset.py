"""Keyset pagination: a page begins after the key of a row, not after a number of rows, so all pages cost the same.

A key has the values of the columns that sort the rows. The last of these columns is unique.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import F, Func, Model, OrderBy, QuerySet
from django.db.models.sql import Query

from library_site.db.sql import SQLCondition

T = TypeVar("T")
Key = tuple[Any, ...]
Column = F | Func


class Start(NamedTuple):
    """A page begins after the key, in the order of the list or, if `backward`, in reverse order.

    Without a key it begins with the first row or, if `backward`, ends with the last one.
    """

    key: Key | None = None
    backward: bool = False


class Page(NamedTuple, Generic[T]):
    """Rows in the order of the list, and the keys after which the previous and next pages begin, or None."""

    rows: list[T]
    previous_key: Key | None = None
    next_key: Key | None = None


class Order:
    """Sorts rows by columns, the last of which is unique.

    `adapt` converts a key to values of the driver, and raises ValueError for a key of another order. Of its values, the
    last ones belong to the columns.
    """

    def __init__(self, *columns: Column, adapt: Callable[[Key], Key] = tuple) -> None:
        self.columns, self.adapt = columns, adapt
        # Created once, because they are part of the key of cached statements.
        self.ascending, self.descending = (
            tuple(OrderBy(column, descending=descending) for column in columns) for descending in (False, True)
        )

    def sort(self, rows: QuerySet[Any], start: Start = Start(), *, descending: bool) -> QuerySet[Any]:  # noqa: B008  # a tuple
        """Returns the rows after the start, in the order in which a page is read; also of a reversed queryset."""
        descending = descending != start.backward
        if start.key:
            model: type[Model] = rows.model
            sql = build_condition_sql(self, model, descending)
            key = self.adapt(start.key)[-len(self.columns) :]
            parameters = key if len(key) == 1 else (key[0], *key)
            rows = rows.filter(SQLCondition(model._meta.db_table, sql, parameters))
        rows = rows if rows.query.standard_ordering else rows.reverse()
        return rows.order_by(*(self.descending if descending else self.ascending))

    def read_page(self, rows: QuerySet[Any], start: Start, limit: int, *, descending: bool) -> Page[Any]:
        """Reads a page of model objects that are sorted by their ids."""
        found = list(self.sort(rows, start, descending=descending)[: limit + 1])
        return cut_page(found, limit, start, lambda row: (row.pk,), descending=descending)


ID_ORDER = Order(F("pk"))


def cut_page(
    rows: list[T], limit: int, start: Start, get_key: Callable[[T], Key], *, descending: bool = False
) -> Page[T]:
    """Builds a page of rows in the order in which they were read. A row beyond the limit shows that others follow.

    From an empty page, the way back begins one beyond its start key, so that it shows the row of this key. On which
    side that is depends on the direction of the list (`descending`).
    """
    end, back = get_key(rows[limit - 1]) if len(rows) > limit else None, None
    if start.key:
        *others, last = start.key
        back = get_key(rows[0]) if rows else (*others, last - 1 if descending != start.backward else last + 1)
    rows = rows[:limit]
    return Page(rows[::-1], end, back) if start.backward else Page(rows, back, end)


@cache
def build_condition_sql(order: Order, model: type[Model], descending: bool) -> str:
    """Returns the condition for the rows after a key in this direction, for an SQLCondition."""
    query, sign = Query(model), "<" if descending else ">"
    compiler = query.get_compiler(DEFAULT_DB_ALIAS)
    compiled = [compiler.compile(column.resolve_expression(query))[0] for column in order.columns]
    first, *others = columns = [sql.replace(f'"{model._meta.db_table}"', "{0}") for sql in compiled]
    if not others:
        return f"{first} {sign} %s"
    # SQLite can use an index of an expression only for a condition on the first column alone.
    places = ", ".join(["%s"] * len(columns))
    return f"({first} {sign}= %s AND ({', '.join(columns)}) {sign} ({places}))"
