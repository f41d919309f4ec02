"""Pagination in version 2: a cursor contains the key of a row instead of an offset, so every page costs the same."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from library_site.api.cursors import ID_CURSOR, Cursor
from library_site.api.documents.schema import LIMIT_SCHEMA, query_parameter
from library_site.api.query import FieldErrors, Query, build_link, read_cursor, read_limit
from library_site.api.responses import NO_STORE
from library_site.db.keyset import ID_ORDER, Key, Page, Start


class CursorPagination(BasePagination):
    """Paginates by `limit` and `cursor`, in the order of the ids. The response links to the next and previous page."""

    cursor: ClassVar[Cursor] = ID_CURSOR
    descending = False
    headers: ClassVar[Mapping[str, str]] = {}
    invalid_cursor_message = "It is no cursor of this list."
    page: Page[Any]

    def find_errors(self, query: Request | Query) -> FieldErrors:
        """Parses the parameters, and returns their errors by name."""
        self.query = query
        self.limit, limit_errors = read_limit(query)
        start, cursor_errors = read_cursor(query, "cursor", self.decode, self.invalid_cursor_message)
        self.start = start or Start()
        return limit_errors | cursor_errors

    def check(self, query: Request | Query, errors: Mapping[str, Any] = {}) -> None:
        """Raises ValidationError, which also includes these errors of other parameters."""
        if all_errors := {**errors, **self.find_errors(query)}:
            raise ValidationError(all_errors)

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request | Query, view: APIView | None = None) -> Any:
        """Raises ValidationError."""
        self.check(request)
        return self.paginate(partial(ID_ORDER.read_page, queryset, descending=self.descending))

    def paginate(self, read: Callable[[Start, int], Page[Any]]) -> list[Any]:
        """Returns the page: the rows that `read` returns for a start and a limit. Call `check` first."""
        self.page = read(self.start, self.limit)
        return self.page.rows

    def build_document(self, rows: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """Returns a JSON object and its headers. The header Link contains the links, too (RFC 8288)."""
        next_url = self.build_link(self.page.next_key, backward=False)
        previous_url = self.build_link(self.page.previous_key, backward=True)
        links = [f'<{url}>; rel="{name}"' for name, url in (("next", next_url), ("prev", previous_url)) if url]
        headers = {**({"Link": ", ".join(links)} if links else {}), **self.headers}
        return {"results": rows, "next": next_url, "previous": previous_url, **self.get_extra_fields()}, headers

    def get_paginated_response(self, data: Any) -> Response:
        body, headers = self.build_document(data)
        return Response(body, headers=headers)

    def get_extra_fields(self) -> Mapping[str, Any]:
        return {}

    def build_link(self, key: Key | None, *, backward: bool) -> str | None:
        return build_link(self.query, cursor=self.encode(key, backward=backward)) if key else None

    def encode(self, key: Key, *, backward: bool) -> str:
        return self.cursor.encode((backward, *key))

    def decode(self, text: str) -> Start:
        """Raises ValueError."""
        return self.cursor.decode_start(text)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        url = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": url, "previous": url},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        return [
            query_parameter("limit", LIMIT_SCHEMA, f"{view.get_plural().capitalize()} a page."),
            query_parameter("cursor", {"type": "string"}, "Where the page begins, as `next` and `previous` have it."),
        ]


class NewestFirstPagination(CursorPagination):
    """For lists that caches must not store, newest first."""

    descending = True
    headers = NO_STORE
