"""Answers plain requests without Django's handler.

The routes of a version find the action of a request. The headers are copied from Django's own answers to earlier
requests. Django answers what the fast path cannot tell for sure: a request with an origin, with a cookie, or with a
header that is unknown here, and every request while a rate limit is set. A write that began is never handed on: Django
only words its failure.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from django.core.exceptions import DisallowedHost
from django.db import DatabaseError, connection
from django.http import HttpRequest

from library_site.cached_settings import cached_settings
from library_site.db.timeouts import is_timeout
from library_site.http.bodies import get_body_limit, read_input
from library_site.http.caching import has_credential
from library_site.http.refusals import Refusal
from library_site.http.request_log import ROUTE_KEY, Headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from library_site.http.versions import Version

# By status and the names of the headers that differ from answer to answer; None where Django must answer.
LearnedHeaders = dict[tuple[int, frozenset[str]], dict[str, str] | None]

BODY_METHODS = frozenset(["POST", "PUT", "PATCH"])
FAST_METHODS = BODY_METHODS | {"GET", "DELETE"}
# Keys that cannot change the answer, or that are checked. The server adds the process's environment variables.
PLAIN_ENVIRON_KEYS = frozenset(os.environ) | set(
    "library.requested_url library.body_limit library.refusal library.version"
    " wsgi.errors wsgi.file_wrapper wsgi.input wsgi.input_terminated wsgi.multiprocess wsgi.multithread wsgi.run_once"
    " wsgi.url_scheme wsgi.version"
    " CONTENT_LENGTH CONTENT_TYPE GATEWAY_INTERFACE PATH_INFO QUERY_STRING REMOTE_ADDR REMOTE_HOST REMOTE_PORT"
    " REQUEST_METHOD SCRIPT_NAME SERVER_NAME SERVER_PORT SERVER_PROTOCOL SERVER_SOFTWARE"
    " HTTP_ACCEPT HTTP_ACCEPT_ENCODING HTTP_ACCEPT_LANGUAGE HTTP_AUTHORIZATION HTTP_BAGGAGE HTTP_CONNECTION HTTP_HOST"
    " HTTP_IF_MATCH HTTP_IF_NONE_MATCH HTTP_SENTRY_TRACE HTTP_TRACEPARENT HTTP_TRACESTATE HTTP_USER_AGENT"
    " HTTP_X_API_KEY HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO HTTP_X_REAL_IP HTTP_X_REQUEST_ID".split()
)
# In characters: a DNS name of 253 (RFC 1035, 2.3.4) and a port. Longer ones are not worth remembering.
HOST_LENGTHS = range(1, 261)
JSON_ACCEPTS = {None, "*/*", "application/json"}
JSON_CONTENT_TYPES = {None, "", "application/json"}
# Headers are stored for each protocol; a caller can send any text, so only these are accepted.
KNOWN_PROTOCOLS = {None, "http", "https"}
# Headers that are the same in all answers of a route.
CONSTANT_HEADERS = frozenset(
    "allow cache-control content-type cross-origin-opener-policy referrer-policy strict-transport-security vary"
    " x-content-type-options".split()
)
# Headers that an action sets, and the length of its body.
VARYING_HEADERS = frozenset(["ETag", "Link", "Location"])
LENGTH_HEADER = "content-length"
STATUS_LINES = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
# The environ's key of an action's failure. The view raises it, so that Django words it.
FAILURE_KEY = "library.failure"


@dataclass
class LearnedRoute:
    """What Django's own answers have shown of a route: its name, and the headers of its answers."""

    name: str = ""
    headers: LearnedHeaders = field(default_factory=dict)


class Answer(NamedTuple):
    """What an action answers; `headers` has some of VARYING_HEADERS."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class FastRequest(NamedTuple):
    """A plain request; `path` is below the home of its version."""

    method: str
    path: str
    query: str
    environ: "WSGIEnvironment"

    def read_body(self) -> bytes | None:
        """Returns the body, or None unless it is JSON of a known length within the limit. It can be read again."""
        length = self.environ.get("CONTENT_LENGTH") or ""
        if (
            self.environ.get("CONTENT_TYPE") not in JSON_CONTENT_TYPES
            or not length.isascii()
            or not length.isdigit()
            or int(length) > get_body_limit(self.environ)
        ):
            return None
        body = read_input(self.environ, get_body_limit(self.environ)).getvalue()
        self.environ["wsgi.input"] = BytesIO(body)
        return body if len(body) == int(length) else None


Action = Callable[[], Answer]
# Finds the action of a request; returns None for a request that Django must answer.
FastRoute = Callable[[FastRequest], Action | None]


def try_fast_path(application: "WSGIApplication") -> "WSGIApplication":
    """Answers with the fast routes of the request's version; the application answers all other requests."""
    learned_routes: defaultdict[tuple[Any, ...], LearnedRoute] = defaultdict(LearnedRoute)

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        version: Version | None = environ.get("library.version")
        if not version or not is_plain(environ):
            return application(environ, start_response)
        match = find_action(version, environ)
        if not match:
            return application(environ, start_response)
        index, action = match
        method = environ["REQUEST_METHOD"]
        key = (version.number, index, method, environ["wsgi.url_scheme"], environ.get("HTTP_X_FORWARDED_PROTO"))
        learned = learned_routes[key]
        if None in learned.headers.values():
            return application(environ, start_response)
        # A write has one kind of answer. Its headers must be known before it begins: it cannot be handed on afterwards.
        headers = next(iter(learned.headers.values()), None)
        if method != "GET" and not headers:
            return application(environ, learn_headers(start_response, learned, environ))
        answer = run_action(action, environ)
        if not answer:
            return application(environ, start_response)
        if method == "GET":
            headers = learned.headers.get((answer.status, frozenset(answer.headers)))
        if not headers:
            return application(environ, learn_headers(start_response, learned, environ))
        environ[ROUTE_KEY] = learned.name
        start_response(STATUS_LINES[answer.status], fill_headers(headers, answer))
        return [answer.body]

    return wrapper


def is_plain(environ: "WSGIEnvironment") -> bool:
    return (
        environ["REQUEST_METHOD"] in FAST_METHODS
        and not environ["library.refusal"]
        and environ.keys() <= PLAIN_ENVIRON_KEYS
        and environ.get("HTTP_ACCEPT") in JSON_ACCEPTS
        and environ.get("HTTP_X_FORWARDED_PROTO") in KNOWN_PROTOCOLS
        and not environ.get("SCRIPT_NAME")
        and (environ["REQUEST_METHOD"] in BODY_METHODS or not environ.get("CONTENT_LENGTH", "").strip("0"))
        and not cached_settings.API_RATE_LIMIT
        and (is_anonymous_read(environ) or is_secure_enough(environ))
        and len(environ.get("HTTP_HOST", "")) in HOST_LENGTHS
        and is_allowed_host(environ["HTTP_HOST"], tuple(cached_settings.ALLOWED_HOSTS))
    )


def is_anonymous_read(environ: "WSGIEnvironment") -> bool:
    """Whether a request changes nothing, so that its action may have run before Django answers it."""
    return environ["REQUEST_METHOD"] == "GET" and not has_credential(environ)


def is_secure_enough(environ: "WSGIEnvironment") -> bool:
    """Whether Django would not redirect the request to HTTPS."""
    return not cached_settings.SECURE_SSL_REDIRECT or environ.get("HTTP_X_FORWARDED_PROTO") == "https"


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


def find_action(version: "Version", environ: "WSGIEnvironment") -> tuple[int, Action] | None:
    """Returns the number of the route that serves the request, and the action."""
    path = environ["PATH_INFO"].removeprefix(version.home)
    request = FastRequest(environ["REQUEST_METHOD"], path, environ.get("QUERY_STRING", ""), environ)
    try:
        for index, route in enumerate(version.fast_routes):
            if action := route(request):
                return index, action
    except Exception as error:
        # Nothing is written yet.
        store_failure(error, environ)
    return None


def run_action(action: Action, environ: "WSGIEnvironment") -> Answer | None:
    """Returns None if Django must answer: it words the failure, or reads once more."""
    try:
        return action()
    except Exception as error:
        if environ["REQUEST_METHOD"] == "GET":
            store_failure(error, environ)
        else:
            environ[FAILURE_KEY] = error
        return None


def store_failure(error: Exception, environ: "WSGIEnvironment") -> None:
    """Keeps a failure for Django if that would only wait for the same; it tries all others once more."""
    is_away = isinstance(error, DatabaseError) and connection.connection is None
    if isinstance(error, Refusal) or is_timeout(error) or is_away:
        environ[FAILURE_KEY] = error
    elif isinstance(error, DatabaseError):
        connection.close_if_unusable_or_obsolete()


def learn_headers(
    start_response: "StartResponse", learned: LearnedRoute, environ: "WSGIEnvironment"
) -> "StartResponse":
    """Stores the headers of an answer that is no failure, and the name of its route."""

    def start_learned_response(status: str, headers: Headers, *arguments: Any) -> Any:
        if status[0] == "2" or status.startswith("304"):
            names = {name.lower() for name, _ in headers}
            varying_names = VARYING_HEADERS.intersection(name for name, _ in headers)
            known_names = CONSTANT_HEADERS | {LENGTH_HEADER, *map(str.lower, varying_names)}
            is_known = names <= known_names and len(names) == len(headers)
            # First: another thread may use the headers at once.
            learned.name = environ.get(ROUTE_KEY, "")
            learned.headers[int(status[:3]), varying_names] = dict(headers) if is_known else None
        return start_response(status, headers, *arguments)

    return start_learned_response


def fill_headers(headers: Mapping[str, str], answer: Answer) -> Headers:
    """Returns the headers with the values of this answer, in the same order. Only a body has a length."""
    filled_headers = {**headers, **answer.headers}
    if answer.body:
        filled_headers["Content-Length"] = str(len(answer.body))
    return list(filled_headers.items())
