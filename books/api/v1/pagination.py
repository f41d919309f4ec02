"""Pagination by skip and limit."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from books.read_model import has_only_conditions
from library_site.api.documents.schema import LIMIT_SCHEMA, query_parameter
from library_site.api.query import FieldErrors, Query, read_integer, read_limit
from library_site.api.shipped import remember
from library_site.db.integers import BIGINT_MAX

# From this offset on, it is faster to find the first book of the page with a separate query.
DEEP_OFFSET = 1_000


@remember
class SkipLimitPagination(BasePagination):
    """Pagination by `skip` and `limit` (specification, Section 8).

    Values out of bounds are rejected; REST framework's own would clamp them, and count the books.
    """

    parameters = ("skip", "limit")

    def find_errors(self, query: Request | Query) -> FieldErrors:
        """Parses the two parameters, and returns their errors by name."""
        self.offset, errors = read_integer(query, "skip", 0, 0, None)
        self.limit, limit_errors = read_limit(query)
        return errors | limit_errors

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request | Query, view: Any = None) -> Any:
        """Raises ValidationError."""
        if errors := self.find_errors(request):
            raise ValidationError(errors)
        return self.get_page(queryset)

    def get_page(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Returns the page as a queryset, because the serializer chooses the columns. Call `find_errors` first."""
        offset, limit = self.offset, self.limit
        if offset > BIGINT_MAX:
            return queryset.none()
        query = queryset.query
        is_by_id = not query.where and query.order_by == ("pk",) and query.standard_ordering
        if offset > DEEP_OFFSET and is_by_id and has_only_conditions(queryset):
            # PostgreSQL skips the books before the page by reading only the index.
            return queryset.filter(pk__gte=queryset.values("pk")[offset : offset + 1])[:limit]
        return queryset[offset : offset + limit]

    def build_document(self, books: Any) -> tuple[Any, dict[str, str]]:
        """Returns the body and the headers of the response."""
        return books, {}

    def get_paginated_response(self, data: Any) -> Response:
        return Response(data)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        skip = {"type": "integer", "minimum": 0, "default": 0}
        return [
            query_parameter("skip", skip, "Number of records to skip."),
            query_parameter("limit", LIMIT_SCHEMA, "Maximum number of records returned."),
        ]
