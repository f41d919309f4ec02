"""The compiled path: a WSGI layer that handles common requests without Django's handler and REST framework's dispatch.

Its responses are the same, byte for byte, so it can be deleted. Each version defines its CompiledRoutes. A route
returns None if Django must handle the request. Django never repeats a write that has begun: it only renders the error.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIRequest
from django.core.signals import got_request_exception, request_finished, request_started
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from library_site.api.query import Query, parse_query
from library_site.cached_settings import cached_settings
from library_site.db.timeouts import is_timeout
from library_site.http.api_errors import ERROR_KEY
from library_site.http.request_log import ROUTE_KEY, Headers
from library_site.http.transfer.bodies import get_body_limit, read_input
from library_site.http.versions import API_ROOT, Version
from library_site.rate_limit.counters import HEADERS_KEY

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Headers that can change the response, and that no route supports. `Origin` is allowed in reads without CORS.
DENIED_KEYS = {"HTTP_CONTENT_ENCODING", "HTTP_TRANSFER_ENCODING", "HTTP_EXPECT", "HTTP_IDEMPOTENCY_KEY"}
JSON_TYPE = "application/json"
CHECKING_MIDDLEWARE = {
    "library_site.http.middleware.require_allowed_host",
    "library_site.http.middleware.require_whole_body",
}
# Receivers in these modules do not need every request.
KNOWN_LISTENERS = ("django.", "library_site.", "books.", "oauth.", "webhooks.")
# In characters: a DNS name of 253 (RFC 1035, 2.3.4) and a port. Longer hosts are not cached.
HOST_LENGTHS = range(1, 261)
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
# Set before a write begins.
WRITE_KEY = "library.write"


class CompiledResponse(NamedTuple):
    """`headers` are the view's headers; Allow, Content-Type and the headers of middleware are added later."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class CompiledRequest(NamedTuple):
    """A request; `argument` is the part of the path where the id belongs."""

    environ: "WSGIEnvironment"
    query: Query
    argument: str

    def read_body(self) -> bytes | None:
        """Returns the body if it is JSON of a known length within the limit, else None. Django can still read it."""
        length = self.environ.get("CONTENT_LENGTH") or ""
        content_type = self.environ.get("CONTENT_TYPE") or JSON_TYPE
        if (
            content_type.partition(";")[0].strip().lower() != JSON_TYPE
            or not (length.isascii() and length.isdigit())
            or int(length) > get_body_limit(self.environ)
        ):
            return None
        body = read_input(self.environ, get_body_limit(self.environ)).getvalue()
        self.environ["wsgi.input"] = BytesIO(body)
        return body if len(body) == int(length) else None


class CompiledRoute(NamedTuple):
    """Handles requests with this method for paths that match `pattern`, below the root of a version.

    `name` is the name of Django's route, `allow` its Allow header. `respond` returns None if Django must respond.
    """

    method: str
    pattern: "re.Pattern[str]"
    name: str
    allow: str
    respond: Callable[[CompiledRequest], CompiledResponse | None]


def answer_compiled(application: "WSGIApplication", versions: Iterable[Version]) -> "WSGIApplication":
    """Returns the unchanged application if third-party signal receivers need every request."""
    routes = defaultdict[tuple[int, str], list[CompiledRoute]](list)
    for version in versions:
        for route in version.compile_routes():
            routes[version.number, route.method].append(route)
    if has_foreign_listeners() or not routes:
        return application
    schemes = [True] if settings.SECURE_SSL_REDIRECT else [False, True]
    headers = {is_secure: build_headers(is_secure) for is_secure in schemes}

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        version: Version | None = environ.get("library.version")
        method = environ["REQUEST_METHOD"]
        if not version or (version.number, method) not in routes:
            return application(environ, start_response)
        is_secure = has_secure_scheme(environ)
        if is_plain(environ, method, is_secure):
            path = environ["PATH_INFO"][len(version.home) :]
            for route in routes[version.number, method]:
                match = route.pattern.fullmatch(path)
                if match and (response := respond(route, environ, match[match.lastindex or 0])):
                    environ[ROUTE_KEY] = route.name
                    added_headers = [*environ.get(HEADERS_KEY, {}).items(), *headers[is_secure]]
                    start_response(STATUS_LINES[response.status], fill_headers(route, response, added_headers))
                    return [response.body]
        return application(environ, start_response)

    return wrapper


def has_foreign_listeners() -> bool:
    signals = (request_started, request_finished, got_request_exception)
    listeners = (listener for signal in signals for listener in signal._live_receivers(None)[0])
    return any(not listener.__module__.startswith(KNOWN_LISTENERS) for listener in listeners)


def build_headers(is_secure: bool) -> Headers:
    """Returns the headers that middleware adds to each response."""
    response = HttpResponse()
    own_names = set(response.headers)
    get_response: Callable[[HttpRequest], Any] = lambda _: response  # noqa: E731  # the innermost of a chain
    for name in reversed(settings.API_MIDDLEWARE):
        # The other middleware only makes checks that this layer makes, too.
        if name not in CHECKING_MIDDLEWARE:
            get_response = import_string(name)(get_response)
    scheme = "https" if is_secure else "http"
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": f"{API_ROOT}/books",
        "wsgi.input": BytesIO(),
        "wsgi.url_scheme": scheme,
    }
    if is_secure and settings.SECURE_PROXY_SSL_HEADER:
        environ.update([settings.SECURE_PROXY_SSL_HEADER])
    headers = get_response(WSGIRequest(environ)).items()
    return [(name, value) for name, value in headers if name not in own_names]


def has_secure_scheme(environ: "WSGIEnvironment") -> bool:
    """The same as `request.is_secure()`."""
    header = cached_settings.SECURE_PROXY_SSL_HEADER
    if header and header[0] in environ:
        return bool(environ[header[0]].partition(",")[0].strip() == header[1])
    return bool(environ["wsgi.url_scheme"] == "https")


def is_plain(environ: "WSGIEnvironment", method: str, is_secure: bool) -> bool:
    """Whether the routes support everything in the request that can change the response."""
    return (
        not environ["library.refusal"]
        and DENIED_KEYS.isdisjoint(environ)
        and ("HTTP_ORIGIN" not in environ or (method == "GET" and not cached_settings.CORS_ALLOWED_ORIGINS))
        and not environ.get("SCRIPT_NAME")
        and (method != "GET" or not environ.get("CONTENT_LENGTH", "").strip("0"))
        and (is_secure or not cached_settings.SECURE_SSL_REDIRECT)
        and len(environ.get("HTTP_HOST", "")) in HOST_LENGTHS
        and is_allowed_host(environ["HTTP_HOST"], tuple(cached_settings.ALLOWED_HOSTS))
    )


@lru_cache(maxsize=1000)
def is_allowed_host(host: str, allowed_hosts: tuple[str, ...]) -> bool:
    """Whether Django accepts the host. `allowed_hosts` is only part of the cache's key."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def respond(route: CompiledRoute, environ: "WSGIEnvironment", argument: str) -> CompiledResponse | None:
    """Returns None if Django must handle the request: it renders the error, or tries again."""
    query = Query(environ["PATH_INFO"], parse_query(environ.get("QUERY_STRING", "")))
    try:
        return route.respond(CompiledRequest(environ, query, argument))
    except Exception as error:
        is_away = isinstance(error, DatabaseError) and connection.connection is None
        # No second try: Django would wait for the same timeout, or repeat a write.
        if WRITE_KEY in environ or is_timeout(error) or is_away:
            environ[ERROR_KEY] = error
        elif isinstance(error, DatabaseError):
            connection.close_if_unusable_or_obsolete()
        return None


def fill_headers(route: CompiledRoute, response: CompiledResponse, added_headers: Headers) -> Headers:
    """Returns the headers in Django's order."""
    headers = [*response.headers.items(), ("Allow", route.allow), *added_headers]
    if not response.body:
        return headers
    return [("Content-Type", JSON_TYPE), *headers, ("Content-Length", str(len(response.body)))]
