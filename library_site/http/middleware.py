"""Middleware of our own."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse


def require_allowed_host(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Holds programs to ALLOWED_HOSTS, lest a page rebind its own name to a local library."""

    def checked(request: HttpRequest) -> HttpResponse:
        request.get_host()
        return get_response(request)

    return checked


def require_whole_body(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Refuses a body that ended before its length."""

    def checked(request: HttpRequest) -> HttpResponse:
        if request.META.get("library.cut_off"):
            raise BadRequest("The body was cut off.")
        return get_response(request)

    return checked


def add_rate_limit_headers(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Puts the headers of `throttling.CallerThrottle` on whatever a counted request is answered."""

    def told(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        for name, value in request.META.get("library.rate_limit", {}).items():
            response[name] = value
        return response

    return told
