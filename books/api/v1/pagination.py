"""Pages of a list by skip and limit."""

from typing import Any

from django.http import HttpResponse
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from library_site.api.query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, FieldErrors, read_integer
from library_site.api.responses import json_response
from library_site.api.schema import query_parameter
from library_site.db.integers import BIGINT_MAX


class SkipLimitPagination(LimitOffsetPagination):
    """Pages by `skip` and `limit` (specification, Section 8).

    Values out of bounds are refused; REST framework would clamp them. The books are not counted.
    """

    offset_query_param = "skip"
    default_limit = DEFAULT_PAGE_SIZE
    max_limit = MAX_PAGE_SIZE

    def read_parameters(self, request: Request) -> FieldErrors:
        """Reads the two parameters, and returns their problems by name."""
        self.skip, skip_errors = read_integer(request, self.offset_query_param, 0, 0, None)
        self.limit, limit_errors = read_integer(request, self.limit_query_param, self.default_limit, 1, self.max_limit)
        return skip_errors | limit_errors

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """To be called after `read_parameters` returned no problems."""
        if self.skip > BIGINT_MAX:
            return []
        page: list[Any] = view.get_representation().fetch_page(queryset, self.skip, self.limit)
        return page

    def get_paginated_response(self, data: Any) -> HttpResponse:
        """The answer is a JSON array, without an object around it."""
        return json_response(data)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        skip = {"type": "integer", "minimum": 0, "default": 0}
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        return [
            query_parameter("skip", skip, "Number of records to skip."),
            query_parameter("limit", limit, "Maximum number of records returned."),
        ]
