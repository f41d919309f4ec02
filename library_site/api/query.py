"""Reads query parameters, and refuses unknown ones."""

from collections.abc import Collection

from django.conf import settings
from rest_framework.exceptions import APIException, ErrorDetail
from rest_framework.request import Request

from library_site.api.suggestions import suggest_names
from library_site.db.integers import parse_integer

# Rows per page.
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
FieldErrors = dict[str, list[ErrorDetail]]
BOOLEANS = {"true": True, "false": False}

INVALID_INTEGER = ErrorDetail("Input should be a valid integer.", code="int_parsing")
INVALID_BOOLEAN = ErrorDetail("Input should be true or false.", code="bool_parsing")


class UnknownParameter(APIException):
    """The query has a parameter that the address does not know."""

    status_code = 400
    default_detail = "The query has a parameter that is not known"
    default_code = "unknown_parameter"


def reject_unknown(request: Request, known_names: Collection[str]) -> None:
    """Raises UnknownParameter. `version` is known everywhere, and already removed from the query."""
    if not request.query_params.keys() <= set(known_names):
        messages = suggest_names(list(request.query_params), [*known_names, "version"])
        raise UnknownParameter({name: [message] for name, message in messages.items()})


def build_link(request: Request, **changes: str) -> str:
    """The absolute URL of this request with these parameters changed."""
    parameters = request.query_params.copy()
    for name, value in changes.items():
        parameters[name] = value
    return f"{settings.PUBLIC_URL}{request.path}?{parameters.urlencode()}"


def read_boolean(request: Request, name: str) -> tuple[bool, FieldErrors]:
    """Returns a boolean of the query, False if it is absent, and its errors."""
    text = request.query_params.get(name, "false")
    return BOOLEANS.get(text, False), {} if text in BOOLEANS else {name: [INVALID_BOOLEAN]}


def read_integer(
    request: Request, name: str, default: int, minimum: int, maximum: int | None
) -> tuple[int, FieldErrors]:
    """Returns an integer of the query and its errors."""
    number = parse_integer(request.query_params.get(name, str(default)))
    error = find_bound_error(number, minimum, maximum)
    return number or 0, {name: [error]} if error else {}


def find_bound_error(number: int | None, minimum: int, maximum: int | None) -> ErrorDetail | None:
    if number is None:
        return INVALID_INTEGER
    if number < minimum:
        return ErrorDetail(f"Input should be greater than or equal to {minimum}.", code="min_value")
    if maximum is not None and number > maximum:
        return ErrorDetail(f"Input should be less than or equal to {maximum}.", code="max_value")
    return None
