"""Keyset pagination: a page begins after the key of a row, not after a number of rows, so all pages cost the same.

A key has the values of the columns that sort the rows. The last of these columns is unique.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from django.db.models import F, Func, Model, OrderBy, Q, QuerySet
from django.db.models.fields.tuple_lookups import Tuple, TupleGreaterThan, TupleLessThan
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

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


def cut_page(rows: list[T], limit: int, start: Start, get_key: Callable[[T], Key]) -> Page[T]:
    """Builds a page of rows in the order in which they were read. A row beyond the limit shows that others follow."""
    end = get_key(rows[limit - 1]) if len(rows) > limit else None
    back = get_key(rows[0]) if rows and start.key else None
    rows = rows[:limit]
    return Page(rows[::-1], end, back) if start.backward else Page(rows, back, end)


def read_page(rows: QuerySet[Any], start: Start, limit: int, *, descending: bool) -> Page[Any]:
    """Reads a page in the order of the ids."""
    is_descending = descending != start.backward
    if start.key:
        rows = rows.filter(build_condition([F("pk")], start.key, is_descending))
    found = list(sort_rows(rows, *order_by([F("pk")], is_descending))[: limit + 1])
    return cut_page(found, limit, start, get_id_key)


def link_pages(page: Page[T], start: Start, descending: bool) -> Page[T]:
    """Links an empty page back to the page from which its start key came.

    `descending` is the direction in which the page was read.
    """
    if page.rows or not start.key:
        return page
    *others, last = start.key
    back = (*others, last - 1 if descending else last + 1)
    return page._replace(next_key=back) if start.backward else page._replace(previous_key=back)


def get_id_key(row: Model) -> Key:
    """The key of a row in a list that is sorted by id."""
    return (row.pk,)


def sort_rows(rows: QuerySet[Any], *order: OrderBy | str) -> QuerySet[Any]:
    """Sorts the rows in this order, also those of a queryset that is reversed."""
    return (rows if rows.query.standard_ordering else rows.reverse()).order_by(*order)


def order_by(columns: Sequence[Column], descending: bool) -> tuple[OrderBy, ...]:
    return tuple(OrderBy(column, descending=descending) for column in columns)


def build_condition(columns: Sequence[Column], key: Key, descending: bool) -> Q:
    """Selects the rows after a key in this direction. A single column must belong to the table: no expression."""
    if len(columns) == 1:
        name: str = columns[0].name  # type: ignore[union-attr]  # a column of the table; its types lack the name
        return Q((f"{name}__lt" if descending else f"{name}__gt", key[0]))
    lookup, tuple_lookup = (LessThanOrEqual, TupleLessThan) if descending else (GreaterThanOrEqual, TupleGreaterThan)
    # SQLite can use an index of an expression only for a condition on the first column alone.
    return Q(lookup(columns[0], key[0])) & Q(tuple_lookup(Tuple(*columns), key))
