"""What a query may say, and how it is refused."""

from collections.abc import Collection

from django.conf import settings
from rest_framework.exceptions import APIException, ErrorDetail
from rest_framework.request import Request

from library_site.api.suggestions import unknown
from library_site.db.integers import integer

Problems = dict[str, list[ErrorDetail]]
BOOLEANS = {"true": True, "false": False}

NOT_AN_INTEGER = ErrorDetail("Input should be a valid integer.", code="int_parsing")
NOT_A_BOOLEAN = ErrorDetail("Input should be true or false.", code="bool_parsing")


class UnknownParameter(APIException):
    """The query has a name that the address does not know."""

    status_code = 400
    default_detail = "The query has a parameter that is not known"
    default_code = "unknown_parameter"


def require_known(request: Request, known: Collection[str]) -> None:
    """Raises UnknownParameter. What chooses the version is known everywhere, and gone by now."""
    if not request.query_params.keys() <= set(known):
        names = unknown(list(request.query_params), [*known, "version"])
        raise UnknownParameter({name: [words] for name, words in names.items()})


def following(request: Request, **changed: str) -> str:
    """The same address with these parameters changed, whole."""
    parameters = request.query_params.copy()
    for name, value in changed.items():
        parameters[name] = value
    return f"{settings.PUBLIC_URL}{request.path}?{parameters.urlencode()}"


def boolean(request: Request, name: str) -> tuple[bool, Problems]:
    """A flag of the query, off where it is absent, and what is wrong with it."""
    text = request.query_params.get(name, "false")
    return BOOLEANS.get(text, False), {} if text in BOOLEANS else {name: [NOT_A_BOOLEAN]}


def bounded(request: Request, name: str, default: int, least: int, most: int | None) -> tuple[int, Problems]:
    """An integer of the query, and what is wrong with it."""
    number = integer(request.query_params.get(name, str(default)))
    problem = out_of_bounds(number, least, most)
    return number or 0, {name: [problem]} if problem else {}


def out_of_bounds(number: int | None, least: int, most: int | None) -> ErrorDetail | None:
    if number is None:
        return NOT_AN_INTEGER
    if number < least:
        return ErrorDetail(f"Input should be greater than or equal to {least}.", code="min_value")
    if most is not None and number > most:
        return ErrorDetail(f"Input should be less than or equal to {most}.", code="max_value")
    return None
