"""Keyset pagination: a cursor contains the sort key of a book instead of an offset, so every page costs the same."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from django.conf import settings
from django.db.models import F, QuerySet
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.views import APIView

from books.fields import FormattedTimestamp
from books.read_model import Column
from books.search.sections import SORT_KEYS
from books.search.texts import count_books
from library_site.api.cursors import Cursor, CursorInteger, InvalidCursor
from library_site.api.documents.schema import query_parameter
from library_site.api.pagination import CursorPagination
from library_site.api.query import FieldErrors, Query, get_parameter, read_boolean
from library_site.api.shipped import remember
from library_site.db.keyset import Key, Start, cut_page
from library_site.db.sql import Row

# The order, whether the page is read backward, the sort key and the id of a book.
BOOK_CURSOR = Cursor(str, bool, str | int, CursorInteger, max_length=2_000)
# The sort key of each order, as it is in a cursor. Books with equal keys are sorted by id.
SORT_ORDERS: dict[str, Column] = {
    **{name: SORT_KEYS[name].columns[0] for name in ("id", "title", "author", "year")},
    "created_at": FormattedTimestamp("created_at"),
}
SORT_SCHEMA = {
    "type": "string",
    "enum": [prefix + name for name in SORT_ORDERS for prefix in ("", "-")],
    "default": "id",
}


@remember
class KeysetPagination(CursorPagination):
    """Also reads the parameters `sort` and `count`."""

    invalid_cursor_message = "It is no cursor of a list in this order."

    def find_errors(self, query: Request | Query) -> FieldErrors:
        self.sort, sort_errors = read_sort_parameter(query)
        self.has_count, count_errors = read_boolean(query, "count")
        errors = super().find_errors(query)
        cursor_errors = {"cursor": errors.pop("cursor")} if "cursor" in errors else {}
        # A cursor belongs to one order.
        return sort_errors | errors | count_errors | ({} if sort_errors else cursor_errors)

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request | Query, view: APIView | None = None) -> Any:
        """Raises ValidationError."""
        self.check(request)
        books = self.get_page(queryset).annotate(page_key=self.key_columns[0])
        return [book for book, *_ in self.cut([(book, book.page_key, book.pk) for book in books])]

    def get_page(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Returns the books of the page and one more. Call `find_errors` first."""
        self.count = {"count": count_books(queryset)} if self.has_count else {}
        name, self.descending = self.sort.removeprefix("-"), self.sort.startswith("-")
        self.key_columns = SORT_ORDERS[name], F("id")
        return SORT_KEYS[name].sort(queryset, self.start, descending=self.descending)[: self.limit + 1]

    def cut(self, rows: list[Row]) -> list[Row]:
        """Returns the rows of the page, in the order of the list. They end with the key columns."""
        get_key = itemgetter(slice(-2, None))
        self.page = cut_page(rows, self.limit, self.start, get_key, descending=self.descending)
        return self.page.rows

    def get_extra_fields(self) -> Mapping[str, Any]:
        return self.count

    def encode(self, key: Key, *, backward: bool) -> str:
        return BOOK_CURSOR.encode((self.sort, backward, *key))

    def decode(self, text: str) -> Start:
        """Raises ValueError if the text is not a cursor of this order."""
        sort, backward, *key = BOOK_CURSOR.decode(text)
        if sort != self.sort:
            raise InvalidCursor
        SORT_KEYS[sort.removeprefix("-")].adapt(tuple(key))
        return Start(tuple(key), backward)

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
        return [
            query_parameter("sort", SORT_SCHEMA, "With `-`, descending."),
            *super().get_schema_operation_parameters(view),
            query_parameter("count", {"type": "boolean", "default": False}, "Whether to count the books of all pages."),
        ]


def read_sort_parameter(query: Request | Query) -> tuple[str, FieldErrors]:
    sort = get_parameter(query, "sort")
    if sort is None:
        return "id", {}
    if sort.removeprefix("-") in SORT_ORDERS:
        return sort, {}
    return "id", {"sort": [ErrorDetail(f"It is one of {', '.join(SORT_ORDERS)}, perhaps behind a minus.", code="enum")]}
