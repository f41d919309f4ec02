"""Plain questions of strangers, answered before Django's handler.

What an answer says besides its body is learned from Django's own answer to the first such question. Whatever could make
Django answer one caller otherwise than another leads on to it: a credential, a condition, an origin, a header that is
not known here. So does a library that protects its books, and one whose answers hold anything that is not known here,
such as what is left of a limit.
"""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import DatabaseError, connection
from django.http import HttpRequest

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from library_site.http.versions import Version

Headers = list[tuple[str, str]]
# By what tells one kind of answer from another; None where they are Django's.
LearnedHeaders = dict[tuple[Any, ...], Headers | None]
NOT_LEARNED: Headers = [("", "")]

# Of a request: what cannot change its answer, and what `is_plain` looks at. The server adds the process's environment.
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
# Kept for each of them, and callers may send any.
KNOWN_PROTOCOLS = {None, "http", "https"}
# Of an answer: what is the same in all of them, but for the tag and the length.
CONSTANT_HEADERS = frozenset(
    "allow content-length content-type cross-origin-opener-policy etag referrer-policy strict-transport-security vary"
    " x-content-type-options".split()
)
# In the environ of a request for a book that was looked for, and is not there.
MISSING_KEY = "library.absent"


class Answer(NamedTuple):
    """A body of JSON, and the tag of what it shows, if it has one."""

    body: bytes
    etag: str = ""


# Reads what a route found out is asked for; None leaves the answer to the view.
PendingRead = Callable[[], Answer | None]


# From the path below a version's home and the query; None where the route does not serve them.
FastRoute = Callable[[str, str], PendingRead | None]


def try_fast_path(application: "WSGIApplication") -> "WSGIApplication":
    """Answers from the fast routes of a request's version, and leaves all else to the application."""
    learned: LearnedHeaders = {}

    def answer(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        version: Version | None = environ.get("library.version")
        if not version or not is_plain(environ):
            return application(environ, start_response)
        path, query = environ["PATH_INFO"].removeprefix(version.home), environ.get("QUERY_STRING", "")
        for number, route in enumerate(version.fast_routes):
            key = (version.number, number, environ["wsgi.url_scheme"], environ.get("HTTP_X_FORWARDED_PROTO"))
            headers, read = learned.get(key, NOT_LEARNED), route(path, query)
            if read and headers is NOT_LEARNED:
                return application(environ, learn_headers(start_response, learned, key))
            if read and headers and (found := run_read(read, environ)):
                start_response("200 OK", fill_headers(headers, found))
                return [found.body]
        return application(environ, start_response)

    return answer


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
def is_allowed_host(host: str, allowed: tuple[str, ...]) -> bool:
    """As Django decides; `allowed` are the hosts by which it does."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def run_read(read: PendingRead, environ: "WSGIEnvironment") -> Answer | None:
    """None where Django words the answer: it is told of what is not there, and meets the same failure itself."""
    try:
        answer = read()
    except Exception as error:
        if isinstance(error, DatabaseError):
            connection.close()
        return None
    if not answer:
        environ[MISSING_KEY] = True
    return answer


def learn_headers(start_response: "StartResponse", learned: LearnedHeaders, key: tuple[Any, ...]) -> "StartResponse":
    """Keeps the headers of the first answer that is none of a redirect or a failure."""

    def started(status: str, headers: Headers, *arguments: Any) -> Any:
        if status == "200 OK":
            learned[key] = list(headers) if {name.lower() for name, _ in headers} <= CONSTANT_HEADERS else None
        return start_response(status, headers, *arguments)

    return started


def fill_headers(headers: Headers, answer: Answer) -> Headers:
    own = {"ETag": answer.etag, "Content-Length": str(len(answer.body))}
    return [(name, own.get(name, value)) for name, value in headers]
