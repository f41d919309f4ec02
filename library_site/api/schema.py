"""What the OpenAPI documents of all versions say alike."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

NEW_BOOK = {
    "title": "Pride and Prejudice",
    "author": "Jane Austen",
    "year": 1813,
    "isbn": "9780141439518",
    "genre": "Romance",
}


class MessageSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()


def message(description: str, words: str) -> OpenApiResponse:
    return OpenApiResponse(MessageSerializer, description, [OpenApiExample("Message", {"message": words})])


def query_parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def request_header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)


def response_header(name: str, description: str, *statuses: int) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, response=list(statuses), description=description)


BOOK_ID = OpenApiParameter("book_id", int, OpenApiParameter.PATH, description="The book's id.")
ETAG = "The state of the book, for `If-Match` and `If-None-Match`."
IF_MATCH = request_header("If-Match", "Go on only if the book is in one of these states.")
IF_NONE_MATCH = request_header("If-None-Match", "Go on only if the book is in none of these states.")


class ClosedSchema(OpenApiSerializerExtension):
    """Says what a closed body refuses."""

    target_class = "books.serializers.Closed"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        passed_over = {name: {"readOnly": True} for name in sorted(self.target.passed_over)}
        return {**schema, "properties": passed_over | schema["properties"], "additionalProperties": False}
