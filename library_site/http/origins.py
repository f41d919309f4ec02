"""Rejects writes by pages of other origins (RFC 6454).

A browser sends a preflight request before it sends JSON to another origin, but none before a body without a
Content-Type. If writes need no credential, any page that a person visits could then change books.
"""

from django.conf import settings
from django.http import HttpRequest
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from library_site.http.api_errors import APIError


class ForeignOrigin(APIError):
    """A page of another origin may not write."""

    status = 403
    message = "Pages of this origin may not write here"


def require_own_origin(request: HttpRequest | Request) -> None:
    """Raises ForeignOrigin if a writing request names an origin that is neither ours nor in CORS_ALLOWED_ORIGINS."""
    origin = request.META.get("HTTP_ORIGIN")
    if origin is None or request.method in SAFE_METHODS:
        return
    own_origins = {settings.PUBLIC_URL, f"{request.scheme}://{request.get_host()}"}
    if origin not in own_origins.union(settings.CORS_ALLOWED_ORIGINS):
        raise ForeignOrigin
