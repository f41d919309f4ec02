"""Parts that the OpenAPI documents of all versions share."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

REQUEST_ID_EXAMPLE = "4c0e6a1f9b8d4e35"


class MessageSerializer(serializers.Serializer[Any]):
    message = serializers.CharField()


def message_schema(description: str, message: str) -> OpenApiResponse:
    return OpenApiResponse(MessageSerializer, description, [OpenApiExample("Message", {"message": message})])


def query_parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def request_header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description)


def response_header(name: str, description: str, *statuses: int) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, response=list(statuses), description=description)


class RejectUnknownSchema(OpenApiSerializerExtension):
    """Documents that a body refuses unknown members."""

    target_class = "library_site.api.serializers.RejectUnknownMixin"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Any:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        ignored = {name: {"readOnly": True} for name in sorted(self.target.ignored_fields)}
        return {**schema, "properties": ignored | schema["properties"], "additionalProperties": False}


class DetailSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request."""

    field = serializers.CharField()
    message = serializers.CharField()


class FailureSerializer(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()
    details = DetailSerializer(many=True, required=False)
    requestId = serializers.CharField(help_text="The same as in X-Request-ID and in the logs.")  # noqa: N815


class ErrorSerializer(serializers.Serializer[Any]):
    """Any error."""

    error = FailureSerializer()


def error_schema(description: str, code: str, message: str, **details: str) -> OpenApiResponse:
    detail_list = [{"field": field, "message": error} for field, error in details.items()]
    content = {
        "code": code,
        "message": message,
        **({"details": detail_list} if detail_list else {}),
        "requestId": REQUEST_ID_EXAMPLE,
    }
    return OpenApiResponse(ErrorSerializer, description, [OpenApiExample("Error", {"error": content})])


def invalid_schema(field: str, message: str) -> OpenApiResponse:
    description = "The request is not valid; every problem is listed."
    return error_schema(description, "VALIDATION_ERROR", "The request is not valid", **{field: message})


def unknown_parameter_schema(parameter: str, message: str) -> OpenApiResponse:
    summary = "The query has a parameter that is not known"
    return error_schema("The query has an unknown parameter.", "UNKNOWN_PARAMETER", summary, **{parameter: message})


UNAUTHENTICATED_SCHEMA = error_schema(
    "There is no credential where one is needed, or a bad one.", "UNAUTHENTICATED", "The access token is not valid"
)
FORBIDDEN_SCHEMA = error_schema(
    "The credential lacks the scope, or a page of another origin writes.",
    "FORBIDDEN",
    "The credential lacks the scope write",
)
UNAVAILABLE_SCHEMA = error_schema(
    "The database is out of reach, or busy.", "UNAVAILABLE", "The library is out of reach, try again later"
)
COMMON_ERRORS = {401: UNAUTHENTICATED_SCHEMA, 403: FORBIDDEN_SCHEMA, 503: UNAVAILABLE_SCHEMA}

MALFORMED_SCHEMA = error_schema(
    "The body is no JSON, or the query has an unknown parameter.",
    "MALFORMED_REQUEST",
    "The body is not valid JSON.",
    body="The body is not valid JSON.",
)
BODY_ERRORS = {
    400: MALFORMED_SCHEMA,
    413: error_schema("The body is over 1 MiB.", "PAYLOAD_TOO_LARGE", "The body is over 1048576 bytes."),
    415: error_schema(
        "The body is not JSON.", "UNSUPPORTED_MEDIA_TYPE", 'Unsupported media type "text/plain" in request.'
    ),
    422: invalid_schema("year", "Input should be a valid integer."),
}
