"""Keyset pagination: a cursor has the sort key of a book instead of an offset, so every page costs the same."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from books.fields import FormattedTimestamp
from books.models import Book
from books.read_model import Column
from books.search.sections import SORT_KEYS, build_beyond_condition
from library_site.api.cursors import Cursor, CursorInteger, InvalidCursor
from library_site.api.query import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    FieldErrors,
    Query,
    build_link,
    get_parameter,
    read_boolean,
    read_cursor,
    read_integer,
)
from library_site.api.schema import query_parameter
from library_site.db.keyset import Key, Start, cut_page, lead_back, order_by
from library_site.db.sql import Row


class BookCursor(Cursor):
    """A position in the list in this order, and the direction to read from it."""

    max_length = 2_000

    sort: str
    backward: bool
    key: str | int
    pk: CursorInteger


INVALID_CURSOR_TEXT = "It is no cursor of a list in this order."
# The key of each order, as it is in a cursor. Books with equal keys are sorted by id.
SORT_ORDERS: dict[str, Column] = {
    **{name: SORT_KEYS[name].columns[0] for name in ("id", "title", "author", "year")},
    "created_at": FormattedTimestamp("created_at"),
}
# Created once, because they are part of the key of cached statements.
ORDER_BY = {
    (name, descending): order_by(SORT_KEYS[name].columns, descending)
    for name in SORT_ORDERS
    for descending in (False, True)
}


class KeysetPagination(BasePagination):
    """Pages by `sort`, `limit`, `cursor` and `count`. The answer links to the next and the previous page (RFC 8288)."""

    default_limit = DEFAULT_PAGE_SIZE
    max_limit = MAX_PAGE_SIZE
    parameters = ("sort", "limit", "cursor", "count")

    def find_errors(self, query: Request | Query) -> FieldErrors:
        """Reads the parameters, and returns their errors by name."""
        self.query = query
        self.sort, sort_errors = read_sort_parameter(query)
        self.limit, limit_errors = read_integer(query, "limit", self.default_limit, 1, self.max_limit)
        self.has_count, count_errors = read_boolean(query, "count")
        decode = partial(decode_cursor, sort=self.sort)
        self.cursor, cursor_errors = (
            (None, {}) if sort_errors else read_cursor(query, "cursor", decode, INVALID_CURSOR_TEXT)
        )
        return sort_errors | limit_errors | count_errors | cursor_errors

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request | Query, view: Any = None) -> Any:
        """Returns a page that is not read yet: the serializer says which columns it needs. Raises ValidationError."""
        if errors := self.find_errors(request):
            raise ValidationError(errors)
        self.count = {"count": queryset.count()} if self.has_count else {}
        name, start = self.sort.removeprefix("-"), Start()
        if self.cursor:
            start = Start((self.cursor.key, self.cursor.pk), self.cursor.backward)
        descending = self.sort.startswith("-") != start.backward
        books = queryset.order_by(*ORDER_BY[name, descending])
        if start.key:
            books = books.filter(build_beyond_condition(name, *start.key, descending=descending))
        self.page = KeysetPage(books[: self.limit + 1], SORT_ORDERS[name], start, descending)
        return self.page

    def get_paginated_response(self, data: Any) -> Response:
        """Returns a JSON object, with the links in the header Link, too. Call it after the page has been read."""
        next_url, previous_url = self.build_link(self.page.next), self.build_link(self.page.previous, backward=True)
        headers = build_link_header(next_url, previous_url)
        return Response({"results": data, "next": next_url, "previous": previous_url, **self.count}, headers=headers)

    def build_link(self, key: Key | None, backward: bool = False) -> str | None:
        return build_link(self.query, cursor=BookCursor(self.sort, backward, *key).encode()) if key else None

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        example_url = f"{settings.PUBLIC_URL}/api/v2/books?cursor=WyJpZCIsZmFsc2UsMSwxXQ"
        url = {"type": ["string", "null"], "format": "uri", "example": example_url}
        count = {
            "type": "integer",
            "minimum": 0,
            "description": "The number of books on all pages, if `count=true` asks for it.",
            "example": 400,
        }
        return {
            "title": "BookPage",
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": url, "previous": url, "count": count},
        }

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        orders = [prefix + name for name in SORT_ORDERS for prefix in ("", "-")]
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        return [
            query_parameter("sort", {"type": "string", "enum": orders, "default": "id"}, "With `-`, descending."),
            query_parameter("limit", limit, "Books a page."),
            query_parameter("cursor", {"type": "string"}, "Where the page begins, as `next` and `previous` have it."),
            query_parameter("count", {"type": "boolean", "default": False}, "Whether to count the books of all pages."),
        ]


class KeysetPage:
    """A page that is read like a queryset. Then `next` and `previous` are the keys beyond which its neighbours begin.

    `books` has one more book than the page; `key` is what sorts them, before the id.
    """

    next: Key | None = None
    previous: Key | None = None

    def __init__(self, books: QuerySet[Book], key: Column, start: Start, descending: bool) -> None:
        self.books, self.start, self.descending = books, start, descending
        self.key_columns = key, F("id")

    def values_list(self, *columns: Column) -> list[Row]:
        """Returns rows that end with the key and the id."""
        return self.cut(list(self.books.values_list(*columns, *self.key_columns)))

    def __iter__(self) -> Iterator[Book]:
        books = self.books.annotate(page_key=self.key_columns[0])
        rows = self.cut([(book, book.page_key, book.pk) for book in books])
        return iter([book for book, *_ in rows])

    def cut(self, rows: list[Row]) -> list[Row]:
        """Returns the rows of the page in the order of the list."""
        limit = (self.books.query.high_mark or 0) - 1
        page = lead_back(cut_page(rows, limit, self.start, get_row_key), self.start, self.descending)
        self.next, self.previous = page.behind, page.before
        return page.rows


def build_link_header(next_url: str | None, previous_url: str | None) -> dict[str, str]:
    """RFC 8288."""
    links = {relation: url for relation, url in (("next", next_url), ("prev", previous_url)) if url}
    return {"Link": ", ".join(f'<{url}>; rel="{relation}"' for relation, url in links.items())} if links else {}


def read_sort_parameter(query: Request | Query) -> tuple[str, FieldErrors]:
    sort = get_parameter(query, "sort")
    if sort is None:
        return "id", {}
    if sort.removeprefix("-") in SORT_ORDERS:
        return sort, {}
    return sort, {"sort": [ErrorDetail(f"It is one of {', '.join(SORT_ORDERS)}, perhaps behind a minus.", code="enum")]}


def decode_cursor(text: str, sort: str) -> BookCursor:
    """Raises ValueError, or its subclass InvalidCursor, unless the text is a cursor of this order."""
    cursor = BookCursor.decode(text)
    if cursor.sort != sort:
        raise InvalidCursor
    SORT_KEYS[sort.removeprefix("-")].parse(cursor.key)
    return cursor


def get_row_key(row: Row) -> Key:
    return row[-2:]
