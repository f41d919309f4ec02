"""The compiled path: it answers common requests without Django's handler and REST framework's dispatch.

It stands before the handler and calls the functions that our middleware calls. Its responses are the same, byte for
byte, so it can be deleted. A route returns None if Django must handle the request. A write that has begun is never
handed on: its errors are answered here.
"""

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from django.conf import settings
from django.core.exceptions import DisallowedHost, ValidationError
from django.core.handlers.exception import response_for_exception
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.middleware.security import SecurityMiddleware
from django.urls import resolve
from rest_framework.exceptions import APIException

from library_site.api.query import Query, parse_query
from library_site.api.shipped import compile_routes, list_changes
from library_site.cached_settings import cached_settings
from library_site.db.errors import is_timeout
from library_site.http.caching import set_caching
from library_site.http.errors import render_content
from library_site.http.handlers import LibraryRequest
from library_site.http.middleware import move_request
from library_site.http.request_log import VERSION_KEY
from library_site.http.transfer import compression
from library_site.http.transfer.bodies import BodyTooSlow, get_body_limit, read_input
from library_site.http.transfer.body_semaphore import TooManyBodies
from library_site.http.versioning import (
    API_PREFIX,
    VersionChoice,
    accept_vendor_type,
    add_version_headers,
    choose_version,
)
from library_site.http.versions import DEFAULT_VERSION, get_versions
from library_site.monitoring.middleware import RequestLogMiddleware
from library_site.rate_limit.counters import NO_LIMIT, RATE_LIMIT_KEY

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)

# Headers that can change the response, and that no route supports. `Origin` is allowed in reads without CORS.
DENIED_KEYS = {"HTTP_CONTENT_ENCODING", "HTTP_TRANSFER_ENCODING", "HTTP_EXPECT", "HTTP_IDEMPOTENCY_KEY"}
JSON_TYPE = "application/json"
# In characters: a DNS name of 253 (RFC 1035, 2.3.4) and a port. Longer hosts are not cached.
HOST_LENGTHS = range(1, 261)
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
BODY_REFUSALS = (TooManyBodies, BodyTooSlow)


class CompiledResponse(NamedTuple):
    """`headers` are those of the view, without Content-Type and Allow."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(slots=True)
class CompiledRequest:
    """A request; `argument` is the id in the path, or the whole path where it has none.

    A responder sets `is_final` before it begins to write: what it raises then is the response.
    """

    environ: "WSGIEnvironment"
    choice: VersionChoice
    query: Query
    argument: str
    is_final: bool = False

    def read_body(self) -> bytes | None:
        """Returns the body if it is JSON of a known length within the limit, else None. Django can still read it.

        Raises TooManyBodies, BodyTooSlow.
        """
        length, limit = self.environ.get("CONTENT_LENGTH") or "", get_body_limit(self.environ)
        content_type = self.environ.get("CONTENT_TYPE") or JSON_TYPE
        if (
            content_type.partition(";")[0].strip().lower() != JSON_TYPE
            or not (length.isascii() and length.isdigit())
            or int(length) > limit
        ):
            return None
        body = read_input(self.environ, limit).getvalue()
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


def wrap_handler(handler: "WSGIApplication") -> "WSGIApplication":
    """Returns the handler itself if something is not as it ships and may need every request."""
    versions = get_versions()
    latest = versions[max(versions)]
    routes = defaultdict[tuple[int, str], list[CompiledRoute]](list)
    for version in versions.values():
        for route in compile_routes(version.urlpatterns):
            routes[version.number, route.method].append(route)
    if changes := list_changes():
        log.warning("The compiled path is off, because these are not as they ship: %s", changes)
    if changes or not routes:
        return handler
    log_middleware, compresses = RequestLogMiddleware(cast("Any", handler)), settings.GZIP
    security_headers = {is_secure: build_security_headers(is_secure) for is_secure in (False, True)}

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        if not environ["PATH_INFO"].startswith(API_PREFIX):
            return handler(environ, start_response)
        choice = choose_version(environ, versions, DEFAULT_VERSION)
        is_secure = has_secure_scheme(environ)
        if choice.refusal or not is_plain(environ, method, is_secure):
            return handler(environ, start_response)
        for route in routes.get((choice.version.number, method), ()):
            if match := route.pattern.fullmatch(choice.path):
                break
        else:
            return handler(environ, start_response)
        entry = log_middleware.begin(environ, environ["PATH_INFO"])
        environ[VERSION_KEY] = choice
        accept_vendor_type(environ, choice.version)
        conditions = compression.accept_compressed_etags(environ) if compresses else {}
        query = Query(choice.version.home + choice.path, parse_query(choice.query))
        response = respond(route, CompiledRequest(environ, choice, query, match[match.lastindex or 0]))
        if response is None:
            environ |= conditions
            return handler(environ, start_response)
        status, own_headers, body = response
        # In the order of our middleware.
        headers = {**own_headers, **environ.get(RATE_LIMIT_KEY, NO_LIMIT)[0], **security_headers[is_secure]}
        if body:
            headers["Content-Length"] = str(len(body))
        add_version_headers(headers, choice, latest)
        set_caching(headers, environ, is_api=True)
        if compresses and compression.prepare_headers(environ, status, headers, conditions):
            body = b"".join(compression.compress([body]))
        headers["X-Request-ID"] = entry.request_id
        start_response(STATUS_LINES[status], [*headers.items()])
        log_middleware.end(environ, entry, route.name, status)
        return [body]

    return wrapper


def build_security_headers(is_secure: bool) -> dict[str, str]:
    """Returns the headers of SecurityMiddleware and CorsMiddleware."""
    request: Any = HttpRequest()
    request.is_secure = lambda: is_secure
    headers = SecurityMiddleware(lambda _: HttpResponse()).process_response(request, HttpResponse()).headers
    del headers["Content-Type"]
    return {**headers, **({"Vary": "origin"} if settings.CORS_ALLOWED_ORIGINS else {})}


def has_secure_scheme(environ: "WSGIEnvironment") -> bool:
    """The same as `request.is_secure()`."""
    header = cached_settings.SECURE_PROXY_SSL_HEADER
    if header and header[0] in environ:
        return bool(environ[header[0]].partition(",")[0].strip() == header[1])
    return bool(environ["wsgi.url_scheme"] == "https")


def is_plain(environ: "WSGIEnvironment", method: str, is_secure: bool) -> bool:
    """Whether the routes support everything in the request that can change the response."""
    return (
        DENIED_KEYS.isdisjoint(environ)
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


def respond(route: CompiledRoute, request: CompiledRequest) -> CompiledResponse | None:
    """Returns None if Django must handle the request: it renders the error, or tries again."""
    try:
        response = route.respond(request)
    except Exception as error:
        is_away = isinstance(error, DatabaseError) and connection.connection is None
        if isinstance(error, DatabaseError):
            connection.close_if_unusable_or_obsolete()
        # No second try: Django would wait for the same timeout, or repeat a write.
        if request.is_final or is_timeout(error) or is_away or isinstance(error, BODY_REFUSALS):
            return answer_error(route, request, error)
        if not isinstance(error, APIException | DatabaseError | ValidationError):
            # A fault of ours, which nobody would see: Django answers as it should, and takes longer.
            log.exception("The compiled path failed.")
        return None
    if response is None:
        return None
    content_type = {"Content-Type": JSON_TYPE} if response.body else {}
    return response._replace(headers={**content_type, **response.headers, "Allow": route.allow})


def answer_error(route: CompiledRoute, request: CompiledRequest, error: Exception) -> CompiledResponse:
    """Returns the response of the view to an error, or Django's if the view has none."""
    django_request = LibraryRequest(request.environ)
    response: HttpResponse
    move_request(django_request, request.query.path)
    if isinstance(error, BODY_REFUSALS):
        # As BodyMiddleware does, before any view.
        response = render_content(django_request, error.get_content(django_request))
    else:
        match = cast("Any", resolve(django_request.path_info))
        view = match.func.cls(action_map=match.func.actions)
        view.setup(django_request, *match.args, **match.kwargs)
        view.request = view.initialize_request(django_request)
        view.request.version = request.choice.version.name
        try:
            response = view.handle_exception(error)
            response["Allow"] = route.allow
        except Exception as unanswered:
            response = response_for_exception(django_request, unanswered)
    return CompiledResponse(response.status_code, response.headers, response.content)
