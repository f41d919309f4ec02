"""Conditional requests (RFC 9110, 13)."""

from hashlib import blake2b

from django.http import HttpResponse, HttpResponseNotModified
from django.utils.http import parse_etags
from rest_framework.request import Request

from library_site.http.refusals import Refusal


class PreconditionFailed(Refusal):
    """The book is not in the state that the request was made for."""

    status = 412
    message = "The book is not in the state the request asks for"


def is_not_modified(request: Request, etag: str) -> bool:
    """Whether the client of a GET has this very representation. Raises PreconditionFailed for its If-Match."""
    require_if_match(request, etag)
    held = parse_etag_header(request, "HTTP_IF_NONE_MATCH")
    return "*" in held or etag in (tag.removeprefix("W/") for tag in held)


def add_etag(request: Request, response: HttpResponse) -> HttpResponse:
    """The answer of a list with the tag of its content, or 304. Raises PreconditionFailed."""
    etag = f'"{blake2b(response.content, digest_size=16).hexdigest()}"'
    if is_not_modified(request, etag):
        return HttpResponseNotModified(headers={"ETag": etag})
    response.headers["ETag"] = etag
    return response


def require_precondition(request: Request, etag: str) -> None:
    """Raises PreconditionFailed where a change asks for another state than this one."""
    if is_not_modified(request, etag):
        raise PreconditionFailed


def require_if_match(request: Request, etag: str) -> None:
    wanted = parse_etag_header(request, "HTTP_IF_MATCH")
    if wanted and "*" not in wanted and etag not in wanted:
        raise PreconditionFailed


def parse_etag_header(request: Request, header: str) -> list[str]:
    """The header's tags, none where it is absent; one that is no list of tags matches nothing."""
    value = request.META.get(header)
    return [] if value is None else parse_etags(value) or [value]
