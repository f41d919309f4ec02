"""From exceptions to answers: one table. The request's version gives an answer its shape."""

import logging
import sys
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import BadRequest, RequestDataTooBig
from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views import defaults
from psycopg.errors import ReadOnlySqlTransaction
from rest_framework.exceptions import APIException, ParseError, ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.settings import api_settings

from books.api.conditional import PreconditionFailed
from books.changes import BookNotFound, ChangedMeanwhile, IsbnInUse
from books.links import url_of_book
from library_site.api.negotiation import UnsupportedVersion
from library_site.http import request_id
from library_site.shapes import Failure, Problem, Shape, detail, envelope, oauth_error
from oauth import api_keys
from oauth.api_keys import TooManyKeys
from webhooks import endpoints, replaying
from webhooks.endpoints import EndpointDisabled, NoPendingSecret, TooManyEndpoints
from webhooks.inbox import UnknownSource
from webhooks.replaying import TooManyEvents
from webhooks.signing import SIGNATURE, InvalidSignature
from webhooks.stream import CursorTooOld

log = logging.getLogger(__name__)

OUT_OF_REACH = Failure(503, "The library is out of reach, try again later")
OWN_SHAPES: dict[str, Shape] = {"/oauth/": oauth_error, "/webhooks/": envelope}
FAILURES: dict[type[BaseException], Failure] = {
    # RFC 9110, 11.6.1 wants a challenge.
    InvalidSignature: Failure(401, "The signature is not valid", headers={"WWW-Authenticate": SIGNATURE}),
    UnknownSource: Failure(404, "Not Found"),
    BookNotFound: Failure(404, "Book not found"),
    ChangedMeanwhile: Failure(409, "The book was changed by another request at the same time"),
    TooManyKeys: Failure(409, f"You have {api_keys.MOST} API keys: revoke one first"),
    TooManyEndpoints: Failure(409, f"You have {endpoints.MOST} webhooks: delete one first"),
    EndpointDisabled: Failure(409, "The webhook is disabled: set its state to active first"),
    NoPendingSecret: Failure(409, "There is no pending secret: add one first"),
    CursorTooOld: Failure(410, "The cursor is older than the events that are kept: begin anew without it"),
    PreconditionFailed: Failure(412, "The book is not in the state the request asks for"),
    RequestDataTooBig: Failure(413, "The body is too large"),
    TooManyEvents: Failure(422, f"More than {replaying.MOST:,} events are meant: ask for a shorter time"),
    # One that stands by for another, or is being moved.
    ReadOnlySqlTransaction: OUT_OF_REACH,
    InterfaceError: OUT_OF_REACH,
    OperationalError: OUT_OF_REACH,
}


def exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Django REST framework's EXCEPTION_HANDLER; what it does not know goes on to `server_error`."""
    failure = described(error, context)
    return answer(context["request"], failure) if failure else None


def described(error: Exception, context: dict[str, Any]) -> Failure | None:
    if isinstance(error, IsbnInUse):
        return isbn_in_use(error, context["request"])
    if isinstance(error, ParseError):
        return Failure(400, str(error.detail), [problem("body", "", error.detail)])
    if isinstance(error, ValidationError):
        return Failure(422, "The request is not valid", list(problems(error.detail, context)))
    if isinstance(error, APIException):
        return refused(error, context)
    return known(error)


def isbn_in_use(error: IsbnInUse, request: Request) -> Failure:
    """Names the book that has the isbn, as long as it is there."""
    message = "Another book has this isbn"
    holder = error.holder()
    if not holder:
        return Failure(409, message, [Problem("body", "isbn", message, "unique")])
    url = url_of_book(request, holder)
    problem = Problem("body", "isbn", f"The book at {url} has it", "unique")
    return Failure(409, message, [problem], {"Link": f'<{url}>; rel="related"'})


def refused(error: APIException, context: dict[str, Any]) -> Failure:
    """What REST framework refuses, and what we refuse by its means: one sentence, or problems by member."""
    found = list(problems(error.detail, context)) if isinstance(error.detail, dict) else []
    message = str(error.default_detail if found else error.detail)
    challenge = getattr(error, "challenge", None) or getattr(error, "auth_header", None)
    given = {"WWW-Authenticate": challenge, "Retry-After": getattr(error, "wait", None)}
    headers = {name: str(value) for name, value in given.items() if value is not None}
    return Failure(error.status_code, message, found, headers, error.default_code)


def known(error: BaseException | None) -> Failure | None:
    """What the table has for an exception."""
    # Django's name for a failure may be wider than the database's own.
    named = error.__cause__ if isinstance(error, InternalError) else error
    failure = next((FAILURES[kind] for kind in type(named).__mro__ if kind in FAILURES), None)
    if failure is OUT_OF_REACH:
        log.error("The database did not answer.", exc_info=error)
    return failure


def problems(details: Any, context: dict[str, Any]) -> Iterator[Problem]:
    """Each problem of a request with its place: a member of the path, the query or the body."""
    elsewhere = "body" if context["request"].method in ("POST", "PUT", "PATCH") else "query"
    for name, found in details.items():
        place = "path" if name in context["kwargs"] else elsewhere
        member = "" if name == api_settings.NON_FIELD_ERRORS_KEY else name
        yield from (problem(place, member, one) for one in found)


def problem(place: str, member: str, found: Any) -> Problem:
    return Problem(place, member, str(found), found.code)


def answer(request: HttpRequest | Request, failure: Failure) -> HttpResponse:
    """JSON whatever the view renders."""
    status, body = shape(request)(failure, request_id.current.get())
    return HttpResponse(JSONRenderer().render(body), "application/json", status, headers=failure.headers)


def shape(request: HttpRequest | Request) -> Shape:
    """The version's; addresses of none speak as the first, but for families of their own."""
    if "library.version" in request.META:
        versions: Shape = request.META["library.version"].shape
        return versions
    return next((own for start, own in OWN_SHAPES.items() if request.path_info.startswith(start)), detail)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: what its own guards refuse, such as a strange Host, and what `BadRequest` tells."""
    return answer(request, Failure(400, str(exception) if isinstance(exception, BadRequest) else "Bad Request"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404: librarians get a page, programs JSON."""
    if request.path.startswith(reverse("admin:index")):
        return defaults.page_not_found(request, exception)
    if refusal := request.META.get("library.refusal"):
        return answer(request, Failure(400, refusal, code=UnsupportedVersion.default_code))
    return answer(request, Failure(404, "Not Found"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, for what a page meets as well."""
    return answer(request, known(sys.exception()) or Failure(500, "Internal Server Error"))
