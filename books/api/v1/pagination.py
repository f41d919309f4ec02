"""Pagination by skip and limit."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from books.read_model import Column, has_only_conditions
from library_site.api.documents.schema import query_parameter
from library_site.api.query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, FieldErrors, Query, read_integer
from library_site.api.shipped import remember
from library_site.db.integers import BIGINT_MAX
from library_site.db.sql import Row

# From this offset on, it is faster to find the first book of the page with a separate query.
DEEP_OFFSET = 1_000


@remember
class SkipLimitPagination(LimitOffsetPagination):
    """Pagination by `skip` and `limit` (specification, Section 8).

    Values out of bounds are rejected; REST framework would clamp them. The books are not counted.
    """

    offset_query_param = "skip"
    default_limit = DEFAULT_PAGE_SIZE
    max_limit = MAX_PAGE_SIZE
    # Of the keys of rows, which this pagination does not need.
    key_columns: tuple[Column, ...] = ()

    def find_errors(self, query: Request | Query) -> FieldErrors:
        """Parses the two parameters, and returns their errors by name."""
        self.errors: FieldErrors = {}
        self.offset, self.limit = self.get_offset(query), self.get_limit(query)
        return self.errors

    def get_offset(self, request: Request | Query) -> int:
        return self.read_integer(request, self.offset_query_param, 0, 0, None)

    def get_limit(self, request: Request | Query) -> int:
        return self.read_integer(request, self.limit_query_param, self.default_limit, 1, self.max_limit)

    def read_integer(self, request: Request | Query, *arguments: Any) -> int:
        value, errors = read_integer(request, *arguments)
        self.errors |= errors
        return value

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request | Query, view: Any = None) -> Any:
        """Raises ValidationError."""
        if errors := self.find_errors(request):
            raise ValidationError(errors)
        return list(self.get_page(queryset))

    def get_page(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Returns the books of the page. Call `find_errors` first."""
        offset, limit = self.offset or 0, self.limit or 0
        if offset > BIGINT_MAX:
            return queryset.none()
        query = queryset.query
        is_by_id = not query.where and query.order_by == ("pk",) and query.standard_ordering
        if offset > DEEP_OFFSET and is_by_id and has_only_conditions(queryset):
            # PostgreSQL skips the books before the page by reading only the index.
            return queryset.filter(pk__gte=queryset.values("pk")[offset : offset + 1])[:limit]
        return queryset[offset : offset + limit]

    def cut(self, rows: list[Row]) -> list[Row]:
        """Returns the rows of the page: all, because none of them is beyond the limit."""
        return rows

    def build_document(self, books: Any) -> tuple[Any, dict[str, str]]:
        """Returns the body and the headers of the response."""
        return books, {}

    def get_paginated_response(self, data: Any) -> Response:
        return Response(data)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        skip = {"type": "integer", "minimum": 0, "default": 0}
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        return [
            query_parameter(self.offset_query_param, skip, "Number of records to skip."),
            query_parameter(self.limit_query_param, limit, "Maximum number of records returned."),
        ]
