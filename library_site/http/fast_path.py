"""Plain questions of strangers, answered before Django's handler.

What an answer says besides its body is learned from Django's own answer to the first such question. Whatever could make
Django answer one caller otherwise than another leads on to it: a credential, a condition, an origin, a header that is
not known here. So does a library that protects its books, and one whose answers hold anything that is not known here,
such as what is left of a limit.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.db import DatabaseError, connection
from django.http import HttpRequest

from books.api.fast_routes import Answer, Asked, Question
from books.api.views import ABSENT
from oauth.permissions import anonymous_may

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from library_site.http.versioning import Version

Headers = list[tuple[str, str]]
# By what tells one kind of answer from another; None where they are Django's.
Learned = dict[tuple[Any, ...], Headers | None]
UNKNOWN: Headers = [("", "")]

# Of a request: what cannot change its answer, and what `is_plain` looks at. The server adds the process's environment.
PLAIN = frozenset(os.environ) | set(
    "library.asked_for library.body_limit library.refusal library.version"
    " wsgi.errors wsgi.file_wrapper wsgi.input wsgi.input_terminated wsgi.multiprocess wsgi.multithread wsgi.run_once"
    " wsgi.url_scheme wsgi.version"
    " CONTENT_LENGTH CONTENT_TYPE GATEWAY_INTERFACE PATH_INFO QUERY_STRING REMOTE_ADDR REMOTE_HOST REMOTE_PORT"
    " REQUEST_METHOD SCRIPT_NAME SERVER_NAME SERVER_PORT SERVER_PROTOCOL SERVER_SOFTWARE"
    " HTTP_ACCEPT HTTP_ACCEPT_ENCODING HTTP_ACCEPT_LANGUAGE HTTP_CONNECTION HTTP_HOST HTTP_USER_AGENT"
    " HTTP_X_FORWARDED_FOR HTTP_X_FORWARDED_PROTO HTTP_X_REAL_IP HTTP_X_REQUEST_ID".split()
)
JSON = {None, "*/*", "application/json"}
# Kept for each of them, and callers may send any.
PROTOCOLS = {None, "http", "https"}
# Of an answer: what is the same in all of them, but for the tag and the length.
SAME = frozenset(
    "allow content-length content-type cross-origin-opener-policy etag referrer-policy strict-transport-security vary"
    " x-content-type-options".split()
)


def front(application: "WSGIApplication", questions: Mapping[int, Sequence[Question]]) -> "WSGIApplication":
    """Answers questions of each version, by its number."""
    learned: Learned = {}

    def answered(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        version: Version | None = environ.get("library.version")
        if not version or not is_plain(environ):
            return application(environ, start_response)
        path, query = environ["PATH_INFO"].removeprefix(version.home), environ.get("QUERY_STRING", "")
        for number, question in enumerate(questions[version.number]):
            key = (version.number, number, environ["wsgi.url_scheme"], environ.get("HTTP_X_FORWARDED_PROTO"))
            headers, asked = learned.get(key, UNKNOWN), question(path, query)
            if asked and headers is UNKNOWN:
                return application(environ, learning(start_response, learned, key))
            if asked and headers and (answer := answer_to(asked, environ)):
                start_response("200 OK", filled(headers, answer))
                return [answer.body]
        return application(environ, start_response)

    return answered


def is_plain(environ: "WSGIEnvironment") -> bool:
    return (
        environ["REQUEST_METHOD"] == "GET"
        and not environ["library.refusal"]
        and environ.keys() <= PLAIN
        and environ.get("HTTP_ACCEPT") in JSON
        and environ.get("HTTP_X_FORWARDED_PROTO") in PROTOCOLS
        and not environ.get("CONTENT_LENGTH", "").strip("0")
        and not environ.get("SCRIPT_NAME")
        and anonymous_may("read")
        and "HTTP_HOST" in environ
        and is_known(environ["HTTP_HOST"], tuple(settings.ALLOWED_HOSTS))
    )


@lru_cache(maxsize=1000)
def is_known(host: str, allowed: tuple[str, ...]) -> bool:
    """As Django decides; `allowed` are the hosts by which it does."""
    request = HttpRequest()
    request.META["HTTP_HOST"] = host
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True


def answer_to(asked: Asked, environ: "WSGIEnvironment") -> Answer | None:
    """None where Django words the answer: it is told of what is not there, and meets the same failure itself."""
    try:
        answer = asked()
    except Exception as error:
        if isinstance(error, DatabaseError):
            connection.close()
        return None
    if not answer:
        environ[ABSENT] = True
    return answer


def learning(start_response: "StartResponse", learned: Learned, key: tuple[Any, ...]) -> "StartResponse":
    """Keeps the headers of the first answer that is none of a redirect or a failure."""

    def started(status: str, headers: Headers, *arguments: Any) -> Any:
        if status == "200 OK":
            learned[key] = list(headers) if {name.lower() for name, _ in headers} <= SAME else None
        return start_response(status, headers, *arguments)

    return started


def filled(headers: Headers, answer: Answer) -> Headers:
    own = {"ETag": answer.etag, "Content-Length": str(len(answer.body))}
    return [(name, own.get(name, value)) for name, value in headers]
