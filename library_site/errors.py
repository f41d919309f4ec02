"""From exceptions to answers, in version 1's words (specification, Section 7): one table, and the shape of a 422."""

import logging
import sys
from collections.abc import Iterator
from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views import defaults
from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.settings import api_settings

from books.changes import BookNotFound, ChangedMeanwhile, IsbnInUse
from books.conditional import PreconditionFailed

log = logging.getLogger(__name__)

ANSWERS: dict[type[BaseException], tuple[int, str]] = {
    BookNotFound: (404, "Book not found"),
    IsbnInUse: (409, "Another book has this isbn"),
    ChangedMeanwhile: (409, "The book was changed by another request at the same time"),
    PreconditionFailed: (412, "The book is not in the state the request asks for"),
    InterfaceError: (503, "The library is out of reach, try again later"),
    OperationalError: (503, "The library is out of reach, try again later"),
}

# REST framework's error codes, and pydantic's names for them.
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


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Django REST framework's EXCEPTION_HANDLER; what it does not know goes on to `server_error`."""
    if isinstance(error, ValidationError):
        return answer(list(problems(error.detail, context)), 422)
    if isinstance(error, ParseError):
        return answer([problem(error.detail, ["body"])], 422)
    if isinstance(error, APIException):
        return answer(error.detail, error.status_code)
    return known(error)


def known(error: BaseException | None) -> HttpResponse | None:
    """The answer that the table has for an exception."""
    found = next((ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS), None)
    if not found:
        return None
    status, words = found
    if status == 503:
        log.error("The database did not answer.", exc_info=error)
    return answer(words, status)


def answer(detail: Any, status: int) -> HttpResponse:
    """The shape of every error of version 1, JSON whatever the view renders."""
    return HttpResponse(JSONRenderer().render({"detail": detail}), "application/json", status)


def problems(details: Any, context: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each problem of a request with its place: a member of the path, the query or the body."""
    elsewhere = "body" if context["request"].method in ("POST", "PUT", "PATCH") else "query"
    for name, found in details.items():
        inside = [] if name == api_settings.NON_FIELD_ERRORS_KEY else [name]
        place = "path" if name in context["kwargs"] else elsewhere
        yield from (problem(one, [place, *inside]) for one in found)


def problem(found: Any, location: list[str]) -> dict[str, Any]:
    return {"loc": location, "msg": str(found), "type": PROBLEM_TYPES.get(found.code, found.code)}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: what its own guards refuse, such as a strange Host."""
    return answer("Bad Request", 400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404: librarians get a page, programs JSON."""
    if request.path.startswith(reverse("admin:index")):
        return defaults.page_not_found(request, exception)
    return answer("Not Found", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, for what a page meets as well."""
    return known(sys.exception()) or answer("Internal Server Error", 500)
