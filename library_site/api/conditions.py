"""Checks conditional requests with ETags (RFC 9110, 13)."""

from django.utils.http import parse_etags
from rest_framework.request import Request

from library_site.http.api_errors import APIError


class PreconditionFailed(APIError):
    """The resource has another ETag than the request requires."""

    status_code = 412
    default_detail = "The state is another than the request asks for"

    def __init__(self, noun: str = "") -> None:
        super().__init__(f"The {noun} is not in the state the request asks for" if noun else None)


def is_not_modified(request: Request, etag: str) -> bool:
    """Whether If-None-Match contains this ETag. Raises PreconditionFailed if If-Match does not contain it."""
    etags = parse_etag_header(request.META.get("HTTP_IF_MATCH"))
    if etags and "*" not in etags and etag not in etags:
        raise PreconditionFailed
    etags = parse_etag_header(request.META.get("HTTP_IF_NONE_MATCH"))
    return "*" in etags or etag in (tag.removeprefix("W/") for tag in etags)


def parse_etag_header(value: str | None) -> list[str]:
    """Returns the ETags of a header; none if it is absent. A malformed header is an ETag that never matches."""
    return [] if value is None else parse_etags(value) or [value]
