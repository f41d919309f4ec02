"""Which part of a list an answer holds."""

from typing import Any, cast

from rest_framework.exceptions import ErrorDetail
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from books.integers import LARGEST, integer

NOT_AN_INTEGER = ErrorDetail("Input should be a valid integer.", code="int_parsing")


class SkipLimit(LimitOffsetPagination):
    """`skip` and `limit` (specification, Section 8), refused where DRF would clamp them; no count is taken."""

    offset_query_param = "skip"
    default_limit = 100
    max_limit = 500

    def problems(self, request: Request) -> dict[str, list[ErrorDetail]]:
        """What is wrong with the two parameters, by name."""
        skip, limit = self.bounds(request)
        found = {"skip": out_of_bounds(skip, 0), "limit": out_of_bounds(limit, 1, self.max_limit)}
        return {name: [problem] for name, problem in found.items() if problem}

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """Comes after `problems` found none."""
        skip, limit = cast("tuple[int, int]", self.bounds(request))
        return [] if skip > LARGEST else view.representation.page(queryset, skip, limit)

    def bounds(self, request: Request) -> tuple[int | None, int | None]:
        parameters = request.query_params
        skip = parameters.get(self.offset_query_param, "0")
        limit = parameters.get(self.limit_query_param, str(self.default_limit))
        return integer(skip), integer(limit)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A list is a JSON array and nothing around it."""
        return schema

    def get_schema_operation_parameters(self, view: APIView) -> list[dict[str, Any]]:
        skip = {"type": "integer", "minimum": 0, "default": 0}
        limit = {"type": "integer", "minimum": 1, "maximum": self.max_limit, "default": self.default_limit}
        return [
            query_parameter("skip", skip, "Number of records to skip."),
            query_parameter("limit", limit, "Maximum number of records returned."),
        ]


def out_of_bounds(number: int | None, least: int, most: int | None = None) -> ErrorDetail | None:
    if number is None:
        return NOT_AN_INTEGER
    if number < least:
        return ErrorDetail(f"Input should be greater than or equal to {least}.", code="min_value")
    if most is not None and number > most:
        return ErrorDetail(f"Input should be less than or equal to {most}.", code="max_value")
    return None


def query_parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}
