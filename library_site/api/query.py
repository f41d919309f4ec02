"""Parses query parameters, rejects unknown and repeated ones, and suggests the nearest known names."""

import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.request import Request

from library_site.db.integers import parse_integer

T = TypeVar("T")

# Rows per page.
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
# In characters. Longer queries are parsed by QueryDict, which limits the number of parameters.
MAX_PLAIN_QUERY = 2_000
ARRAY_PATTERN = re.compile(r"\[[0-9]*\]\Z")
NO_PARAMETERS: MultiValueDict[str, str] = MultiValueDict()
FieldErrors = dict[str, list[ErrorDetail]]
BOOLEANS = {"true": True, "false": False}

INVALID_INTEGER = ErrorDetail("Input should be a valid integer.", code="int_parsing")
REPEATED = ErrorDetail("It takes one value, and is given more than once.", code="repeated")
INVALID_BOOLEAN = ErrorDetail("Input should be true or false.", code="bool_parsing")


class Query(NamedTuple):
    """The path and the query parameters of a request, with the same names as in REST framework's Request."""

    path: str
    query_params: MultiValueDict[str, str]


def parse_query(text: str) -> MultiValueDict[str, str]:
    """Parses a query string in Latin-1, as WSGI passes it. A QueryDict takes ten times as long."""
    if not text:
        return NO_PARAMETERS
    if not text.isascii() or "%" in text or "+" in text or len(text) > MAX_PLAIN_QUERY:
        return QueryDict(text.encode("latin-1"))
    parameters: dict[str, list[str]] = {}
    for part in text.split("&"):
        if part:
            name, _, value = part.partition("=")
            parameters.setdefault(name, []).append(value)
    return MultiValueDict(parameters)


class UnknownParameter(APIException):
    """The query has a parameter that this URL does not support."""

    status_code = 400
    default_detail = "The query has a parameter that is not known"
    default_code = "unknown_parameter"


def check_parameters(query: Query | Request, known_names: Collection[str], list_names: Collection[str] = ()) -> None:
    """Raises UnknownParameter, or ValidationError for a repeated parameter that takes only one value.

    `list_names` are the parameters with several values. `version` is always allowed, and already removed.
    """
    parameters = query.query_params
    if not {get_list_name(name, list_names) for name in parameters} <= set(known_names):
        messages = suggest_names(list(parameters), [*known_names, "version"])
        raise UnknownParameter({name: [message] for name, message in messages.items()})
    repeated = [
        name
        for name, values in parameters.lists()
        if len(values) > 1 and get_list_name(name, list_names) not in list_names
    ]
    if repeated:
        raise ValidationError({name: [REPEATED] for name in repeated})


def build_link(query: Query | Request, **changes: str) -> str:
    """Returns the absolute URL of this request with changed parameters."""
    parameters = {**dict(query.query_params.lists()), **changes}
    return f"{settings.PUBLIC_URL}{query.path}?{urlencode(parameters, doseq=True)}"


def get_parameter(query: Query | Request, name: str) -> str | None:
    """Returns the last value of a parameter. Faster than `MultiValueDict.get`, which catches errors if it is absent."""
    if name not in query.query_params:
        return None
    return str(query.query_params[name])


def get_list_name(name: str, list_names: Collection[str]) -> str:
    """Returns `fields` for `fields[]` and `fields[0]`, as axios and PHP write arrays, and other names unchanged."""
    plain = ARRAY_PATTERN.sub("", name) if name.endswith("]") else name
    return plain if plain in list_names else name


def read_list(query: Query | Request, name: str) -> list[str] | None:
    """Returns the distinct values of a parameter that is repeated or comma-separated."""
    texts = [
        text for key, values in query.query_params.lists() if get_list_name(key, [name]) == name for text in values
    ]
    if not texts:
        return None
    return list(dict.fromkeys(value for text in texts for value in text.split(",")))


def read_boolean(query: Query | Request, name: str) -> tuple[bool, FieldErrors]:
    """Returns a boolean parameter, False if it is absent, and its errors."""
    text = get_parameter(query, name)
    if text is None:
        return False, {}
    return BOOLEANS.get(text, False), {} if text in BOOLEANS else {name: [INVALID_BOOLEAN]}


def read_integer(
    query: Query | Request, name: str, default: int, minimum: int, maximum: int | None
) -> tuple[int, FieldErrors]:
    """Returns an integer parameter and its errors."""
    text = get_parameter(query, name)
    if text is None:
        return default, {}
    number = parse_integer(text)
    if number is None:
        return 0, {name: [INVALID_INTEGER]}
    if number < minimum:
        return number, {name: [ErrorDetail(f"Input should be greater than or equal to {minimum}.", "min_value")]}
    if maximum is not None and number > maximum:
        return number, {name: [ErrorDetail(f"Input should be less than or equal to {maximum}.", "max_value")]}
    return number, {}


def read_limit(query: Query | Request) -> tuple[int, FieldErrors]:
    """Returns the page size and its errors."""
    return read_integer(query, "limit", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE)


def read_cursor(
    query: Query | Request, name: str, decode: Callable[[str], T], message: str
) -> tuple[T | None, FieldErrors]:
    """Returns the cursor, None if it is absent, and its errors. `decode` raises ValueError."""
    text = get_parameter(query, name)
    if text is None:
        return None, {}
    try:
        return decode(text), {}
    except ValueError:
        return None, {name: [ErrorDetail(message, code="cursor")]}


def suggest_names(names: Collection[str], known_names: Collection[str]) -> dict[str, str]:
    """Returns messages for the first five unknown names, each with the nearest known name.

    The names are shortened and their lone surrogates escaped, so that a response can contain them.
    """
    unknown_names = [name for name in names if name not in known_names][:5]
    texts = [name[:50].encode(errors="backslashreplace").decode() for name in unknown_names]
    return {name: describe_nearest(name, known_names) for name in texts}


def describe_nearest(name: str, known_names: Collection[str]) -> str:
    (match,) = get_close_matches(name.lower(), known_names, n=1, cutoff=0.0)
    return f"It is not known here; the nearest name is {match}."
