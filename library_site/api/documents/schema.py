"""Shared parts of the OpenAPI documents of all versions."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema_serializer
from rest_framework import serializers

from library_site.api.query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE


class MessageSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()


def document_message(description: str, message: str) -> OpenApiResponse:
    return document_answer(MessageSerializer, description, {"message": message})


def document_answer(schema: Any, description: str, example: Any) -> OpenApiResponse:
    """Describes a successful response with one example; the schema is a serializer or a part of a document."""
    return OpenApiResponse(schema, description, [OpenApiExample("Answer", example)])


def request_example(name: str, value: Any) -> OpenApiExample:
    return OpenApiExample(name, value, request_only=True)


def query_parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


LIMIT_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MAX_PAGE_SIZE, "default": DEFAULT_PAGE_SIZE}


def document_limit(description: str) -> OpenApiParameter:
    return OpenApiParameter("limit", LIMIT_SCHEMA, description=description)


def request_header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)


def response_header(name: str, description: str, *statuses: int) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, response=list(statuses), description=description)


# The schemas of pages.
URL_FIELD: dict[str, Any] = {"allow_null": True, "help_text": "Null if this is the last page."}
CURSOR_PARAMETER = OpenApiParameter(
    "cursor", {"type": "string"}, description="Where the page begins, as `next` and `previous` have it."
)
PAGE_LINK = response_header("Link", "The next and the previous page (RFC 8288).", 200)


def build_page_serializer(row: type[serializers.BaseSerializer[Any]], description: str, **url: Any) -> Any:
    """Returns the serializer of a page of these rows, for the documents; `url` are the options of its links."""
    field = serializers.URLField if url else serializers.CharField
    fields = {name: field(**(url or {"allow_null": True})) for name in ("next", "previous")}
    name = row.__name__.replace("Serializer", "PageSerializer")
    bases = (serializers.Serializer,)
    page = type(name, bases, {"__doc__": description, "results": row(many=True), **fields})
    return extend_schema_serializer(many=False)(page)


class RejectUnknownSchema(OpenApiSerializerExtension):
    """Documents that a body with unknown fields is rejected."""

    target_class = "library_site.api.serializers.RejectUnknownMixin"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        ignored = {name: {"readOnly": True} for name in sorted(self.target.ignored_fields)}
        return {**schema, "properties": ignored | schema["properties"], "additionalProperties": False}
