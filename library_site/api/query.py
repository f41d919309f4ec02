"""What a query may say, and how it is refused."""

from collections.abc import Collection

from django.conf import settings
from rest_framework.exceptions import APIException, ErrorDetail
from rest_framework.request import Request

from library_site.api.suggestions import suggest_names
from library_site.db.integers import parse_integer

# Rows a page, where a request does not say.
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
FieldErrors = dict[str, list[ErrorDetail]]
BOOLEANS = {"true": True, "false": False}

INVALID_INTEGER = ErrorDetail("Input should be a valid integer.", code="int_parsing")
INVALID_BOOLEAN = ErrorDetail("Input should be true or false.", code="bool_parsing")


class UnknownParameter(APIException):
    """The query has a name that the address does not know."""

    status_code = 400
    default_detail = "The query has a parameter that is not known"
    default_code = "unknown_parameter"


def reject_unknown(request: Request, known: Collection[str]) -> None:
    """Raises UnknownParameter. What chooses the version is known everywhere, and gone by now."""
    if not request.query_params.keys() <= set(known):
        names = suggest_names(list(request.query_params), [*known, "version"])
        raise UnknownParameter({name: [words] for name, words in names.items()})


def build_link(request: Request, **changed: str) -> str:
    """The same address with these parameters changed, whole."""
    parameters = request.query_params.copy()
    for name, value in changed.items():
        parameters[name] = value
    return f"{settings.PUBLIC_URL}{request.path}?{parameters.urlencode()}"


def read_boolean(request: Request, name: str) -> tuple[bool, FieldErrors]:
    """A flag of the query, off where it is absent, and what is wrong with it."""
    text = request.query_params.get(name, "false")
    return BOOLEANS.get(text, False), {} if text in BOOLEANS else {name: [INVALID_BOOLEAN]}


def read_integer(request: Request, name: str, default: int, least: int, most: int | None) -> tuple[int, FieldErrors]:
    """An integer of the query, and what is wrong with it."""
    number = parse_integer(request.query_params.get(name, str(default)))
    problem = find_bound_error(number, least, most)
    return number or 0, {name: [problem]} if problem else {}


def find_bound_error(number: int | None, least: int, most: int | None) -> ErrorDetail | None:
    if number is None:
        return INVALID_INTEGER
    if number < least:
        return ErrorDetail(f"Input should be greater than or equal to {least}.", code="min_value")
    if most is not None and number > most:
        return ErrorDetail(f"Input should be less than or equal to {most}.", code="max_value")
    return None
