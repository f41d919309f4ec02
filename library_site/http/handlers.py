"""Django's handler for API requests, and the choice between it and the handler for pages."""

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch

from library_site.http.request_log import ROUTE_KEY
from library_site.http.versions import API_ROOT

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Addresses for programs; all others are pages.
API_PREFIXES = (f"{API_ROOT}/", "/webhooks/")
# Characters of a query that need no escape (RFC 3986, 3.4).
QUERY_SAFE = "/?:@!$&'()*+,;=%"
# The compiled path replaces this API_MIDDLEWARE, or leaves the requests that need it to Django.
STOCK_MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "library_site.http.middleware.require_allowed_host",
    "library_site.http.middleware.require_whole_body",
    "oauth.throttling.bound_streams",
]
# Middleware that some settings add.
OPTIONAL_MIDDLEWARE = {"corsheaders.middleware.CorsMiddleware", "oauth.throttling.count_refusals"}


class APIRequest(WSGIRequest):
    def get_full_path(self, force_append_slash: bool = False) -> str:
        """Returns the address that the client requested: a redirect to HTTPS must use it, not the version's path."""
        path, query = self.META["library.requested_url"]
        return quote(path, encoding="latin-1") + (f"?{quote(query, QUERY_SAFE, 'latin-1')}" if query else "")


class PagesHandler(WSGIHandler):
    """Django's handler, which names the route of a request to the outer layers."""

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        match: ResolverMatch = super().resolve_request(request)
        request.META[ROUTE_KEY] = name_route(match)
        return match


def name_route(match: ResolverMatch) -> str:
    """Returns the name of a pattern with its namespaces, but without the version, which metrics have as a label."""
    namespaces = match.namespaces[1:] if match.route.startswith(API_PREFIXES[0][1:]) else match.namespaces
    return ":".join([*namespaces, match.url_name or match.route])


class APIHandler(PagesHandler):
    """Django's handler with API_MIDDLEWARE only: programs need no sessions and no CSRF tokens."""

    request_class = APIRequest

    def load_middleware(self, is_async: bool = False) -> None:
        """Loads API_MIDDLEWARE instead of MIDDLEWARE: Django reads only that setting."""
        pages_middleware = settings.MIDDLEWARE
        settings.MIDDLEWARE = settings.API_MIDDLEWARE
        try:
            super().load_middleware(is_async)
        finally:
            settings.MIDDLEWARE = pages_middleware

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """Sets Content-Length: without it the server would send a chunked body."""
        response = super().get_response(request)
        if isinstance(response, HttpResponse) and response.content:
            response["Content-Length"] = len(response.content)
        return response


def has_stock_middleware() -> bool:
    """Tells whether the compiled path may be used: any other middleware must see every request."""
    return [name for name in settings.API_MIDDLEWARE if name not in OPTIONAL_MIDDLEWARE] == STOCK_MIDDLEWARE


def route_request(api: "WSGIApplication", pages: "WSGIApplication") -> "WSGIApplication":
    """Sends programs to `api` and browsers to `pages`. A slash at the end of a program's address is ignored.

    Methods are case-sensitive (RFC 9110, 9.1), but Django treats `get` as GET. So a method with lower-case letters gets
    a space at its end, which makes it unknown.
    """

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if not method.isupper():
            environ["REQUEST_METHOD"] = f"{method} "
        if not path.startswith(API_PREFIXES):
            return pages(environ, start_response)
        # `negotiate_version` has set it for addresses of a version.
        environ.setdefault("library.requested_url", (path, environ.get("QUERY_STRING", "")))
        environ["PATH_INFO"] = path.removesuffix("/")
        return api(environ, start_response)

    return wrapper
