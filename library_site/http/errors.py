"""Turns exceptions into error responses in the format of the version."""

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from psycopg.errors import IdleInTransactionSessionTimeout, ReadOnlySqlTransaction
from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.settings import api_settings

from library_site.db.errors import is_timeout
from library_site.db.outages import record_failure
from library_site.http.api_errors import APIError, ErrorContent, FieldError, RefusedWrite
from library_site.http.error_pages import is_program_path, prefers_page, render_error_page
from library_site.http.request_log import VERSION_KEY, current_request_id

log = logging.getLogger(__name__)

# Takes the content of an error and the request's id; returns status and body.
ErrorFormat = Callable[[ErrorContent, str], tuple[int, dict[str, Any]]]

UNAVAILABLE = ErrorContent(503, "The library is out of reach, try again later")
FORBIDDEN = ErrorContent(403, "Forbidden")
NOT_FOUND = ErrorContent(404, "Not Found")
BUSY = ErrorContent(503, "The library is busy, try again later")
# The environ's key of the kind of database error in a request.
DATABASE_ERROR_KEY = "library.database_error"
# Its values.
DATABASE_ERRORS = ("unavailable", "busy", "failed")
# Seconds after which a client can repeat a request that got a 503 response.
UNAVAILABLE_RETRY_AFTER = "1"
CONTENT_BY_EXCEPTION: dict[type[BaseException], ErrorContent] = {
    RequestDataTooBig: ErrorContent(413, "The body is too large"),
    PermissionDenied: FORBIDDEN,
    Http404: NOT_FOUND,
    # The server is read-only: it is a replica, or the database is being moved.
    ReadOnlySqlTransaction: UNAVAILABLE,
    # PostgreSQL closes the connection, too.
    IdleInTransactionSessionTimeout: UNAVAILABLE,
    InterfaceError: UNAVAILABLE,
    OperationalError: UNAVAILABLE,
}
# From REST framework's codes to pydantic's names for them.
FIELD_ERROR_TYPES = {
    "required": "missing",
    "invalid": "model_attributes_type",
    "null": "model_attributes_type",
    "max_length": "string_too_long",
    "min_value": "greater_than_equal",
    "max_value": "less_than_equal",
    "null_characters_not_allowed": "value_error",
    "surrogate_characters_not_allowed": "string_unicode",
}
CODES_BY_STATUS = {
    400: "MALFORMED_REQUEST",
    401: "UNAUTHENTICATED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    409: "CONFLICT",
    410: "GONE",
    412: "PRECONDITION_FAILED",
    413: "PAYLOAD_TOO_LARGE",
    415: "UNSUPPORTED_MEDIA_TYPE",
    422: "VALIDATION_ERROR",
    429: "RATE_LIMIT",
    500: "INTERNAL_ERROR",
    503: "UNAVAILABLE",
}
# Codes of 400 responses, by REST framework's code. The status determines all other codes.
CODES_BY_DRF_CODE = {"unsupported_version": "UNSUPPORTED_VERSION", "unknown_parameter": "UNKNOWN_PARAMETER"}
OAUTH_ERRORS_BY_STATUS = {404: "not_found", 500: "server_error", 503: "temporarily_unavailable"}


class UnsupportedVersion(APIException):
    """The request names a version that is not served, or several."""

    status_code = 400
    default_code = "unsupported_version"


def detail_format(content: ErrorContent, request_id: str) -> tuple[int, dict[str, Any]]:
    """Version 1: a message, or a list of errors, always with status 422."""
    if content.status in (400, 422) and content.errors:
        return 422, {
            "detail": [
                {"loc": [place, *filter(None, [field])], "msg": message, "type": FIELD_ERROR_TYPES.get(code, code)}
                for place, field, message, code in content.errors
            ]
        }
    return content.status, {"detail": content.message}


def oauth_format(content: ErrorContent, request_id: str) -> tuple[int, dict[str, Any]]:
    """The format of the authorization server (RFC 6749, 5.2)."""
    error = OAUTH_ERRORS_BY_STATUS.get(content.status, "invalid_request")
    return content.status, {"error": error, "error_description": content.message}


def envelope_format(content: ErrorContent, request_id: str) -> tuple[int, dict[str, Any]]:
    """The format of version 2: `{"error": {"code", "message", "details"?, "requestId"}}`."""
    details = [{"field": error.field or error.place, "message": error.message} for error in content.errors]
    error = {
        "code": CODES_BY_DRF_CODE.get(content.code) or CODES_BY_STATUS.get(content.status, content.code.upper()),
        "message": content.message,
        **({"details": details} if details else {}),
        "requestId": request_id,
    }
    return content.status, {"error": error}


FORMATS_BY_PREFIX: dict[str, ErrorFormat] = {"/oauth/": oauth_format, "/webhooks/": envelope_format}


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Django REST framework's EXCEPTION_HANDLER. It leaves unknown exceptions to `server_error`."""
    # Only here: it imports the classes that REST_FRAMEWORK names, which import this module.
    from rest_framework.views import set_rollback

    content = build_content(error, context)
    set_rollback()
    return render_content(context["request"], content) if content else None


def build_content(error: Exception, context: dict[str, Any]) -> ErrorContent | None:
    if isinstance(error, APIError) or not isinstance(error, APIException):
        return describe_known(error, context["request"])
    if isinstance(error, ParseError):
        return ErrorContent(400, str(error.detail), [build_field_error("body", "", error.detail)])
    if isinstance(error, ValidationError):
        return ErrorContent(422, "The request is not valid", list(iter_field_errors(error.detail, context)))
    return describe_api_exception(error, context)


def describe_api_exception(error: APIException, context: dict[str, Any]) -> ErrorContent:
    """The content of an APIException: one message, or an error for each field."""
    errors = list(iter_field_errors(error.detail, context)) if isinstance(error.detail, dict) else []
    message = str(error.default_detail if errors else error.detail)
    challenge = getattr(error, "challenge", None) or getattr(error, "auth_header", None)
    values = {"WWW-Authenticate": challenge, "Retry-After": getattr(error, "wait", None)}
    headers = {name: str(value) for name, value in values.items() if value is not None}
    return ErrorContent(error.status_code, message, errors, headers, error.default_code)


def describe_known(error: BaseException | None, request: HttpRequest | Request) -> ErrorContent | None:
    """Returns the content of an APIError, a time-out or an exception in CONTENT_BY_EXCEPTION, and None for others."""
    if isinstance(error, APIError):
        return error.get_content(request)
    if error and is_timeout(error):
        request.META[DATABASE_ERROR_KEY] = "busy"
        log.warning("The database is busy: %s", type(error.__cause__ or error).__name__)
        return BUSY
    # Django's InternalError can hide a more exact exception of the database.
    cause = error.__cause__ if isinstance(error, InternalError) else error
    contents = (CONTENT_BY_EXCEPTION.get(exception_class) for exception_class in type(cause).__mro__)
    content = next(filter(None, contents), None)
    if error and content is UNAVAILABLE:
        request.META[DATABASE_ERROR_KEY] = "unavailable"
        record_failure(error)
    elif isinstance(error, DatabaseError):
        request.META[DATABASE_ERROR_KEY] = "failed"
    return content


def iter_field_errors(details: Any, context: dict[str, Any]) -> Iterator[FieldError]:
    """The errors of a request, each with its place: path, query or body."""
    default_place = "body" if context["request"].method in ("POST", "PUT", "PATCH") else "query"
    for field, error in iter_details(details):
        yield build_field_error("path" if field in context["kwargs"] else default_place, field, error)


def iter_details(details: Any, *names: str) -> Iterator[tuple[str, Any]]:
    """Yields the errors of nested serializers, each with the names that lead to it, such as `parts.1.name`."""
    if isinstance(details, dict):
        for name, inner in details.items():
            yield from iter_details(inner, *names, *([] if name == api_settings.NON_FIELD_ERRORS_KEY else [str(name)]))
    elif isinstance(details, list):
        for position, inner in enumerate(details):
            yield from iter_details(inner, *names, *([str(position)] if isinstance(inner, dict) else []))
    else:
        yield ".".join(names), details


def build_field_error(place: str, field: str, error: Any) -> FieldError:
    return FieldError(place, field, str(error), error.code)


def render_content(request: HttpRequest | Request, content: ErrorContent) -> HttpResponse:
    """Renders a page for a browser at an address for people, and JSON otherwise. Every 503 has Retry-After."""
    if prefers_page(request):
        response = render_error_page(request, content)
    else:
        status, body = select_format(request)(content, current_request_id.get())
        response = HttpResponse(JSONRenderer().render(body), "application/json", status)
        # Tests of apps read it, as of any response of REST framework.
        vars(response)["data"] = body
    if not is_program_path(request.path_info):
        patch_vary_headers(response, ["Accept"])
    if response.status_code == 503:
        response["Retry-After"] = UNAVAILABLE_RETRY_AFTER
    for name, value in content.headers.items():
        response[name] = value
    return response


def select_format(request: HttpRequest | Request) -> ErrorFormat:
    """Returns the error format of the request's version. Without one, the path decides; the default is version 1's."""
    if VERSION_KEY in request.META:
        version_format: ErrorFormat = request.META[VERSION_KEY].version.error_format
        return version_format
    path = request.path_info
    formats = (error_format for prefix, error_format in FORMATS_BY_PREFIX.items() if path.startswith(prefix))
    return next(formats, detail_format)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400, for Django's own checks, such as that of Host. The message of `BadRequest` is sent."""
    message = str(exception) if isinstance(exception, BadRequest) else "Bad Request"
    # The OAuth endpoints respond with 400 to every form that they cannot parse (RFC 6749, 5.2).
    content = None if is_program_path(request.path_info) else describe_known(exception, request)
    return render_content(request, content or ErrorContent(400, message))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    return render_content(request, FORBIDDEN)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    choice = request.META.get(VERSION_KEY)
    if choice and choice.refusal:
        return render_content(request, ErrorContent(400, choice.refusal, code=UnsupportedVersion.default_code))
    return render_content(request, NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, for pages and for programs."""
    error = sys.exception()
    if isinstance(error, RefusedWrite) and prefers_page(request):
        log.error("A write was refused", exc_info=error)
        return render_content(request, ErrorContent(409, str(error)))
    return render_content(request, describe_known(error, request) or ErrorContent(500, "Internal Server Error"))
