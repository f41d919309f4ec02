"""Checks the conditions of requests by ETag (RFC 9110, 13)."""

from hashlib import blake2b

from django.http import HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from rest_framework.request import Request

from library_site.http.refusals import Refusal


class PreconditionFailed(Refusal):
    """The book is not in the state that the request asks for."""

    status = 412
    message = "The book is not in the state the request asks for"


def is_not_modified(request: Request, etag: str) -> bool:
    """Whether If-None-Match names this ETag. Raises PreconditionFailed if If-Match does not name it."""
    require_if_match(request, etag)
    etags = parse_etag_header(request, "HTTP_IF_NONE_MATCH")
    return "*" in etags or etag in (tag.removeprefix("W/") for tag in etags)


def add_etag(request: Request, response: HttpResponse) -> HttpResponse:
    """Adds the ETag of its content to the answer, or returns 304. Raises PreconditionFailed."""
    etag = f'"{blake2b(response.content, digest_size=16).hexdigest()}"'
    if is_not_modified(request, etag):
        return HttpResponseNotModified(headers={"ETag": etag})
    response.headers["ETag"] = etag
    return response


def require_precondition(request: Request, etag: str) -> None:
    """Raises PreconditionFailed if a change asks for another state than this one."""
    if is_not_modified(request, etag):
        raise PreconditionFailed


def require_if_match(request: Request, etag: str) -> None:
    etags = parse_etag_header(request, "HTTP_IF_MATCH")
    if etags and "*" not in etags and etag not in etags:
        raise PreconditionFailed


def parse_etag_header(request: Request, header: str) -> list[str]:
    """Returns the ETags of a header, none if it is absent. A malformed header counts as an ETag that never matches."""
    value = request.META.get(header)
    return [] if value is None else parse_etags(value) or [value]
