"""Describes the errors of operations in the OpenAPI documents, in the error format of each version.

An operation declares only its own errors. The common ones follow from its path, body, parameters and scope.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from library_site.api.query import MAX_PAGE_SIZE, describe_nearest
from library_site.http import versions
from library_site.http.api_errors import INVALID_MESSAGE, APIError, ErrorContent, FieldError
from library_site.http.errors import (
    CODES_BY_DRF_CODE,
    CODES_BY_STATUS,
    UNAVAILABLE,
    ErrorFormat,
    detail_format,
    envelope_format,
)

Operation = dict[str, Any]
REQUEST_ID_EXAMPLE = "4c0e6a1f9b8d4e35"
# An unknown parameter. The nearest known name differs between operations.
UNKNOWN_NAME = "autor"


@dataclass(frozen=True)
class ErrorDocument:
    """One error that an operation can return. Its example is rendered in the version's error format."""

    description: str
    content: ErrorContent


def document_error(error: type[APIError], description: str = "", *errors: FieldError) -> dict[int, ErrorDocument]:
    """Describes an APIError with its status. Without a description, the first line of its docstring is used."""
    content = ErrorContent(error.status_code, error.default_detail, errors)
    return {error.status_code: ErrorDocument(description or (error.__doc__ or "").partition("\n")[0], content)}


def document_invalid(field_name: str, message: str, place: str = "body", code: str = "") -> dict[int, ErrorDocument]:
    """Describes the error of an invalid field. Only version 1 shows the place and the code."""
    content = ErrorContent(422, INVALID_MESSAGE, [FieldError(place, field_name, message, code)])
    return {422: ErrorDocument(f"{INVALID_MESSAGE}; every problem is listed.", content)}


INVALID_LIMIT = document_invalid(
    "limit", f"Input should be less than or equal to {MAX_PAGE_SIZE}.", "query", "less_than_equal"
)


class ErrorDetailSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request."""

    field = serializers.CharField()
    message = serializers.CharField()


@extend_schema_field(
    {
        "type": "string",
        "title": "ErrorCode",
        "enum": sorted({*CODES_BY_STATUS.values(), *CODES_BY_DRF_CODE.values()}),
        "description": "Others may follow.",
    }
)
class ErrorCodeField(serializers.CharField):
    """What kind of error it is."""


class ErrorContentSerializer(serializers.Serializer[Any]):
    code = ErrorCodeField()
    message = serializers.CharField()
    details = ErrorDetailSerializer(many=True, required=False)
    requestId = serializers.CharField(help_text="The same as in X-Request-ID and in the logs.")  # noqa: N815


@extend_schema_serializer(component_name="Error")
class EnvelopeSerializer(serializers.Serializer[Any]):
    """Any error."""

    error = ErrorContentSerializer()


@extend_schema_serializer(component_name="Error")
class MessageErrorSerializer(serializers.Serializer[Any]):
    """Any error but a 422."""

    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """One thing that is wrong with a request, and where."""

    loc = serializers.ListField(child=serializers.CharField(), min_length=1)
    msg = serializers.CharField()
    type = serializers.CharField()


class ProblemsSerializer(serializers.Serializer[Any]):
    """All that is wrong with a request."""

    detail = ProblemSerializer(many=True)


# By error format: the body of any error except 422, and the body of a 422.
ERROR_SERIALIZERS: dict[ErrorFormat, tuple[type[serializers.Serializer[Any]], type[serializers.Serializer[Any]]]] = {
    detail_format: (MessageErrorSerializer, ProblemsSerializer),
    envelope_format: (EnvelopeSerializer, EnvelopeSerializer),
}
RETRY_AFTER = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds until the caller may go on."}
CHALLENGE = {"schema": {"type": "string"}, "description": "The credential that would be accepted (RFC 6750, 3)."}
HEADERS_BY_STATUS = {
    **{status: {"WWW-Authenticate": CHALLENGE} for status in ("401", "403")},
    **{status: {"Retry-After": RETRY_AFTER} for status in ("429", "503")},
}
COMMON_ERRORS = [
    ErrorDocument(
        "There is no credential where one is needed, or a bad one.", ErrorContent(401, "The access token is not valid")
    ),
    ErrorDocument("The database is out of reach, or busy.", UNAVAILABLE),
]
RATE_LIMITED = ErrorDocument("The caller has asked too often.", ErrorContent(429, "Request was throttled."))
MALFORMED = "The body is not valid JSON."
BODY_ERRORS = [
    *document_invalid("year", "Input should be a valid integer.", code="int_type").values(),
    ErrorDocument(
        "The body is no JSON, or the query has an unknown parameter.",
        ErrorContent(400, MALFORMED, [FieldError("body", "", MALFORMED, "parse_error")]),
    ),
    ErrorDocument("The body is over 1 MiB.", ErrorContent(413, "The body is over 1048576 bytes.")),
    ErrorDocument("The body is not JSON.", ErrorContent(415, 'Unsupported media type "text/plain" in request.')),
]


def iter_common_errors(operation: Operation, permissions: Sequence[str]) -> Iterator[ErrorDocument]:
    """Yields the errors that follow from the path, body, parameters, scope and permissions of an operation."""
    yield from COMMON_ERRORS
    yield build_forbidden(operation, permissions)
    yield from BODY_ERRORS if "requestBody" in operation else [build_unknown_parameter(operation)]
    if settings.API_RATE_LIMIT:
        yield RATE_LIMITED


def build_forbidden(operation: Operation, permissions: Sequence[str]) -> ErrorDocument:
    """Operations without a required scope return 403 if a new credential would have more scopes than the caller."""
    requirements = operation.get("security", [])
    scopes = (scope for requirement in requirements for names in requirement.values() for scope in names)
    scope = next(scopes, "write")
    names = f" ({', '.join(permissions)})" if permissions else ""
    description = f"The credential lacks the scope, its user a permission{names}, or a page of another origin writes."
    return ErrorDocument(description, ErrorContent(403, f"The credential lacks the scope {scope}"))


def build_unknown_parameter(operation: Operation) -> ErrorDocument:
    parameters = operation.get("parameters", [])
    names = ["version", *(parameter["name"] for parameter in parameters if parameter["in"] == "query")]
    error = FieldError("query", UNKNOWN_NAME, describe_nearest(UNKNOWN_NAME, names), "unknown_parameter")
    content = ErrorContent(400, "The query has a parameter that is not known", [error], code="unknown_parameter")
    return ErrorDocument("The query has an unknown parameter.", content)


def build_response(error: ErrorDocument, error_format: ErrorFormat) -> OpenApiResponse:
    status, example = error_format(error.content, REQUEST_ID_EXAMPLE)
    serializer = ERROR_SERIALIZERS[error_format][status == 422]
    return OpenApiResponse(serializer, error.description, [OpenApiExample("Error", example)])


def select_error_format(path: str) -> ErrorFormat:
    """The error format of the version that has this path."""
    homes = {
        version.home: version for version in versions.get_versions().values() if path.startswith(f"{version.home}/")
    }
    return homes[max(homes, key=len)].error_format
