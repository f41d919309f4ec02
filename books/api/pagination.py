"""Keyset pagination: a cursor has the sort key of a book instead of an offset, so every page costs the same."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import F
from rest_framework.exceptions import ErrorDetail
from rest_framework.pagination import BasePagination
from rest_framework.views import APIView

from books.fields import FormattedTimestamp
from books.read_model import BookQuery, Column, Representation
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
from library_site.api.responses import encode_json
from library_site.api.schema import query_parameter
from library_site.db.keyset import Key, Start, cut_page, lead_back, order_by
from library_site.db.sql import Row
from library_site.http.fast_path import Answer


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

    def read_parameters(self, query: Query) -> FieldErrors:
        """Reads the parameters, and returns their problems by name."""
        self.query = query
        self.sort, sort_errors = read_sort_parameter(query)
        self.limit, limit_errors = read_integer(query, "limit", self.default_limit, 1, self.max_limit)
        self.has_count, count_errors = read_boolean(query, "count")
        decode = partial(decode_cursor, sort=self.sort)
        self.cursor, cursor_errors = (
            (None, {}) if sort_errors else read_cursor(query, "cursor", decode, INVALID_CURSOR_TEXT)
        )
        return sort_errors | limit_errors | count_errors | cursor_errors

    def build_page(self, query: Query, selection: BookQuery, representation: Representation) -> Answer:
        """Answers a JSON object. To be called after `read_parameters` returned no problems."""
        count = {"count": selection.count_books()} if self.has_count else {}
        results = self.fetch_page(selection, representation)
        return answer_page(results, self.next, self.previous, **count)

    def fetch_page(self, selection: BookQuery, representation: Representation) -> list[msgspec.Struct]:
        """Returns the structs of the page, and sets the links to the next and the previous page."""
        name, start = self.sort.removeprefix("-"), Start()
        if self.cursor:
            start = Start((self.cursor.key, self.cursor.pk), self.cursor.backward)
        descending = self.sort.startswith("-") != start.backward
        books = selection.books.order_by(*ORDER_BY[name, descending])
        if start.key:
            books = books.filter(build_beyond_condition(name, *start.key, descending=descending))
        selection = selection._replace(books=books)
        rows = representation.fetch_rows(selection, 0, self.limit + 1, SORT_ORDERS[name], F("id"))
        page = lead_back(cut_page(rows, self.limit, start, get_row_key), start, descending)
        self.previous = self.build_link(page.before, backward=True)
        self.next = self.build_link(page.behind, backward=False)
        return representation.to_structs(page.rows)

    def build_link(self, key: Key | None, backward: bool) -> str | None:
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


def answer_page(results: Sequence[Any], next_url: str | None, previous_url: str | None, **members: Any) -> Answer:
    """Answers a page with its links, in the body and in the header Link (RFC 8288)."""
    links = {relation: url for relation, url in (("next", next_url), ("prev", previous_url)) if url}
    headers = {"Link": ", ".join(f'<{url}>; rel="{relation}"' for relation, url in links.items())} if links else {}
    body = {"results": results, "next": next_url, "previous": previous_url, **members}
    return Answer(200, headers, encode_json(body))


def read_sort_parameter(query: Query) -> tuple[str, FieldErrors]:
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
