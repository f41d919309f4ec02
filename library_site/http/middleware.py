"""Django middleware: checks of the host and of the body."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from library_site.http.api_errors import ErrorContent
from library_site.http.errors import render_content
from library_site.http.transfer.bodies import BODY_REFUSAL_KEY


def require_allowed_host(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Checks Host against ALLOWED_HOSTS: otherwise a web page could reach a local library by DNS rebinding."""

    def wrapper(request: HttpRequest) -> HttpResponse:
        request.get_host()
        return get_response(request)

    return wrapper


def require_whole_body(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Rejects a request whose body is shorter than its Content-Length, or was not read."""

    def wrapper(request: HttpRequest) -> HttpResponse:
        if refusal := request.META.get(BODY_REFUSAL_KEY):
            # Raised, it would be a page of Django's with status 500 while DEBUG is on, and an error in the log.
            return render_content(request, refusal.get_content(request))
        if request.META.get("library.cut_off"):
            return render_content(request, ErrorContent(400, "The body was cut off."))
        return get_response(request)

    return wrapper
