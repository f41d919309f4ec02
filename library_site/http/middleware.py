"""Django middleware: checks of the host and of the body."""

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse


def require_allowed_host(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Checks Host against ALLOWED_HOSTS: otherwise a web page could reach a local library by DNS rebinding."""

    def wrapper(request: HttpRequest) -> HttpResponse:
        request.get_host()
        return get_response(request)

    return wrapper


def require_whole_body(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Refuses a body that is shorter than its Content-Length."""

    def wrapper(request: HttpRequest) -> HttpResponse:
        if request.META.get("library.cut_off"):
            raise BadRequest("The body was cut off.")
        return get_response(request)

    return wrapper
