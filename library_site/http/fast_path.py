"""Answers plain anonymous GET requests without Django's handler.

The headers are copied from Django's own answer to the first such request. Django answers every request for which its
answer could differ between callers: one with a credential, a condition, an origin, or a header that is unknown here. It
also answers all requests where reading needs a credential, or where its answers have a header that is unknown here,
such as a rate limit.
"""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import DatabaseError, connection
from django.http import HttpRequest

from library_site.db.timeouts import is_timeout

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from library_site.http.versions import Version

Headers = list[tuple[str, str]]
# By the kind of answer; None where Django must answer.
LearnedHeaders = dict[tuple[Any, ...], Headers | None]
NOT_LEARNED: Headers = [("", "")]

# Keys that cannot change the answer, or that `is_plain` checks. The server adds the process's environment variables.
PLAIN_ENVIRON_KEYS = frozenset(os.environ) | set(
    "library.asked_for library.body_limit library.refusal library.version"
    " wsgi.errors wsgi.file_wrapper wsgi.input wsgi.input_terminated wsgi.multiprocess wsgi.multithread wsgi.run_once"
    " wsgi.url_scheme wsgi.version"
    " CONTENT_LENGTH CONTENT_TYPE GATEWAY_INTERFACE PATH_INFO QUERY_STRING REMOTE_ADDR REMOTE_HOST REMOTE_PORT"
    " REQUEST_METHOD SCRIPT_NAME SERVER_NAME SERVER_PORT SERVER_PROTOCOL SERVER_SOFTWARE"
    " HTTP_ACCEPT HTTP_ACCEPT_ENCODING HTTP_ACCEPT_LANGUAGE HTTP_CONNECTION HTTP_HOST HTTP_USER_AGENT"
    " HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO HTTP_X_REAL_IP HTTP_X_REQUEST_ID".split()
)
JSON_ACCEPTS = {None, "*/*", "application/json"}
# Headers are stored for each protocol; a caller can send any text, so only these are accepted.
KNOWN_PROTOCOLS = {None, "http", "https"}
# Headers that are the same in all answers, except ETag and Content-Length.
CONSTANT_HEADERS = frozenset(
    "allow content-length content-type cross-origin-opener-policy etag referrer-policy strict-transport-security vary"
    " x-content-type-options".split()
)
# Marks the environ of a request for a book that was looked up and does not exist.
MISSING_KEY = "library.absent"
# Holds the exception of a read that timed out: Django words it, and does not let the client wait again.
TIMEOUT_KEY = "library.timeout"


class Answer(NamedTuple):
    """A body of JSON and its ETag, which may be empty."""

    body: bytes
    etag: str = ""


# Reads what the request asks for; None leaves the answer to the view.
PendingRead = Callable[[], Answer | None]
# Takes the path below a version's home and the query; returns None if the route does not serve them.
FastRoute = Callable[[str, str], PendingRead | None]


def try_fast_path(application: "WSGIApplication") -> "WSGIApplication":
    """Answers with the fast routes of the request's version; the application answers all other requests."""
    learned_headers: LearnedHeaders = {}

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        version: Version | None = environ.get("library.version")
        if not version or not is_plain(environ):
            return application(environ, start_response)
        path, query = environ["PATH_INFO"].removeprefix(version.home), environ.get("QUERY_STRING", "")
        for index, route in enumerate(version.fast_routes):
            key = (version.number, index, environ["wsgi.url_scheme"], environ.get("HTTP_X_FORWARDED_PROTO"))
            headers, read = learned_headers.get(key, NOT_LEARNED), route(path, query)
            if read and headers is NOT_LEARNED:
                return application(environ, learn_headers(start_response, learned_headers, key))
            if read and headers:
                try:
                    answer = read()
                except Exception as error:
                    # Django meets the same failure, and words it.
                    if is_timeout(error):
                        environ[TIMEOUT_KEY] = error
                    elif isinstance(error, DatabaseError):
                        connection.close()
                    break
                if answer:
                    start_response("200 OK", fill_headers(headers, answer))
                    return [answer.body]
                environ[MISSING_KEY] = True
        return application(environ, start_response)

    return wrapper


def is_plain(environ: "WSGIEnvironment") -> bool:
    return (
        environ["REQUEST_METHOD"] == "GET"
        and not environ["library.refusal"]
        and environ.keys() <= PLAIN_ENVIRON_KEYS
        and environ.get("HTTP_ACCEPT") in JSON_ACCEPTS
        and environ.get("HTTP_X_FORWARDED_PROTO") in KNOWN_PROTOCOLS
        and not environ.get("CONTENT_LENGTH", "").strip("0")
        and not environ.get("SCRIPT_NAME")
        and "HTTP_HOST" in environ
        and is_allowed_host(environ["HTTP_HOST"], tuple(settings.ALLOWED_HOSTS))
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


def learn_headers(
    start_response: "StartResponse", learned_headers: LearnedHeaders, key: tuple[Any, ...]
) -> "StartResponse":
    """Stores the headers of an answer with status 200; redirects and failures are ignored."""

    def start_learned_response(status: str, headers: Headers, *arguments: Any) -> Any:
        if status == "200 OK":
            names = {name.lower() for name, _ in headers}
            learned_headers[key] = list(headers) if names <= CONSTANT_HEADERS else None
        return start_response(status, headers, *arguments)

    return start_learned_response


def fill_headers(headers: Headers, answer: Answer) -> Headers:
    values = {"ETag": answer.etag, "Content-Length": str(len(answer.body))}
    return [(name, values.get(name, value)) for name, value in headers]
