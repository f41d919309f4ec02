"""What a failure looks like on the wire: in version 1, and in the wider family (specification, Section 7)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One thing that is wrong with a request; `place` is path, query or body, `code` REST framework's."""

    place: str
    member: str
    message: str
    code: str


class Failure(NamedTuple):
    """What there is to say, in no version's words; `code` is REST framework's, where the status does not tell all."""

    status: int
    message: str
    problems: Sequence[Problem] = ()
    headers: Mapping[str, str] = {}
    code: str = ""


Shape = Callable[[Failure, str], tuple[int, dict[str, Any]]]
"""From a failure and the request's id to status and body."""

# REST framework's codes, and pydantic's names for them.
PROBLEM_TYPES = {
    "required": "missing",
    "invalid": "model_attributes_type",
    "null": "model_attributes_type",
    "max_length": "string_too_long",
    "min_value": "greater_than_equal",
    "max_value": "less_than_equal",
    "null_characters_not_allowed": "value_error",
    "surrogate_characters_not_allowed": "string_unicode",
}

CODES = {
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


# Which of the 400s it is, by REST framework's codes; every other follows from the status.
OWN_CODES = {"unsupported_version": "UNSUPPORTED_VERSION", "unknown_parameter": "UNKNOWN_PARAMETER"}


OAUTH_ERRORS = {404: "not_found", 500: "server_error", 503: "temporarily_unavailable"}


def detail(failure: Failure, request_id: str) -> tuple[int, dict[str, Any]]:
    """Version 1: a sentence, or the list of problems, for which there is no status but 422."""
    if failure.status in (400, 422) and failure.problems:
        return 422, {"detail": [listed(problem) for problem in failure.problems]}
    return failure.status, {"detail": failure.message}


def listed(problem: Problem) -> dict[str, Any]:
    location = [problem.place, problem.member] if problem.member else [problem.place]
    return {"loc": location, "msg": problem.message, "type": PROBLEM_TYPES.get(problem.code, problem.code)}


def oauth_error(failure: Failure, request_id: str) -> tuple[int, dict[str, Any]]:
    """The authorization server's (RFC 6749, 5.2)."""
    error = OAUTH_ERRORS.get(failure.status, "invalid_request")
    return failure.status, {"error": error, "error_description": failure.message}


def envelope(failure: Failure, request_id: str) -> tuple[int, dict[str, Any]]:
    """The family's: `{"error": {"code", "message", "details"?, "requestId"}}`."""
    details = [{"field": one.member or one.place, "message": one.message} for one in failure.problems]
    error = {
        "code": OWN_CODES.get(failure.code, CODES[failure.status]),
        "message": failure.message,
        **({"details": details} if details else {}),
        "requestId": request_id,
    }
    return failure.status, {"error": error}
