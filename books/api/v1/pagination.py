"""Pages of a list by skip and limit."""

from typing import Any

from rest_framework.pagination import LimitOffsetPagination
from rest_framework.views import APIView

from books.read_model import BookQuery, Representation
from library_site.api.query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, FieldErrors, Query, read_integer
from library_site.api.responses import encode_json
from library_site.api.schema import query_parameter
from library_site.db.integers import BIGINT_MAX
from library_site.http.fast_path import Answer


class SkipLimitPagination(LimitOffsetPagination):
    """Pages by `skip` and `limit` (specification, Section 8).

    Values out of bounds are refused; REST framework would clamp them. The books are not counted.
    """

    offset_query_param = "skip"
    default_limit = DEFAULT_PAGE_SIZE
    max_limit = MAX_PAGE_SIZE
    parameters = ("skip", "limit")

    def read_parameters(self, query: Query) -> FieldErrors:
        """Reads the two parameters, and returns their problems by name."""
        self.skip, skip_errors = read_integer(query, self.offset_query_param, 0, 0, None)
        self.limit, limit_errors = read_integer(query, self.limit_query_param, self.default_limit, 1, self.max_limit)
        return skip_errors | limit_errors

    def build_page(self, query: Query, selection: BookQuery, representation: Representation) -> Answer:
        """Answers a JSON array. To be called after `read_parameters` returned no problems."""
        page = representation.fetch_page(selection, self.skip, self.limit or 0) if self.skip <= BIGINT_MAX else []
        return Answer(200, {}, encode_json(page))

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return schema

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        skip = {"type": "integer", "minimum": 0, "default": 0}
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        return [
            query_parameter("skip", skip, "Number of records to skip."),
            query_parameter("limit", limit, "Maximum number of records returned."),
        ]
