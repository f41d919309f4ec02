"""Checks conditional requests with ETags (RFC 9110, 13)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.utils.http import parse_etags
from rest_framework.request import Request

from library_site.http.api_errors import APIError, ErrorContent


class PreconditionFailed(APIError):
    """The resource has another ETag than the request requires."""

    status = 412
    message = "The state is another than the request asks for"

    def __init__(self, noun: str = "") -> None:
        super().__init__(noun)
        self.noun = noun

    def get_content(self, request: object) -> ErrorContent:
        message = f"The {self.noun} is not in the state the request asks for" if self.noun else self.message
        return ErrorContent(self.status, message)


class Conditions(NamedTuple):
    """The headers If-Match and If-None-Match of a request; None if absent."""

    if_match: str | None = None
    if_none_match: str | None = None

    @classmethod
    def from_environ(cls, environ: Mapping[str, Any]) -> "Conditions":
        return cls(environ.get("HTTP_IF_MATCH"), environ.get("HTTP_IF_NONE_MATCH"))

    def is_not_modified(self, etag: str) -> bool:
        """Whether If-None-Match contains this ETag. Raises PreconditionFailed if If-Match does not contain it."""
        if self == NO_CONDITIONS:
            return False
        etags = parse_etag_header(self.if_match)
        if etags and "*" not in etags and etag not in etags:
            raise PreconditionFailed
        etags = parse_etag_header(self.if_none_match)
        return "*" in etags or etag in (tag.removeprefix("W/") for tag in etags)

    def require_state(self, etag: str) -> None:
        """Raises PreconditionFailed if the conditions of a write do not match this ETag."""
        if self.is_not_modified(etag):
            raise PreconditionFailed


NO_CONDITIONS = Conditions()


def get_conditions(request: Request) -> Conditions:
    return Conditions.from_environ(request.META)


def parse_etag_header(value: str | None) -> list[str]:
    """Returns the ETags of a header; none if it is absent. A malformed header is an ETag that never matches."""
    return [] if value is None else parse_etags(value) or [value]
