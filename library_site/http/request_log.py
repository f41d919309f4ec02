"""Gives each request an id, which its response has too, writes the access log, and lists the requests in progress."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from django.db.backends.base.base import BaseDatabaseWrapper

from library_site.db.sql import thread_connection

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger("library_site.access")

LINE_FORMAT = "%(method)s %(path)s %(status)d %(duration_ms)s ms"
NO_REQUEST = "-"
current_request_id = ContextVar("current_request_id", default=NO_REQUEST)
# The environ's key of the name of the request's route, such as `books`.
ROUTE_KEY = "library.route"
# The methods that HTTP defines and the library may answer.
METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
is_acceptable = re.compile(r"[A-Za-z0-9._-]{8,64}").fullmatch


class ActiveRequest(NamedTuple):
    """A request in progress; `began_at` comes from perf_counter, `database` is the connection of its thread."""

    method: str
    path: str
    request_id: str
    began_at: float
    database: BaseDatabaseWrapper


# An alias, because Python evaluates the annotations of an inner function, and builds their types, for each request.
Headers = list[tuple[str, str]]
# Called at the end of a request with its environ, method, status and duration in seconds.
RequestObserver = Callable[["WSGIEnvironment", str, int, float], None]
# By the id of the environ.
active_requests: dict[int, ActiveRequest] = {}


def log_requests(application: "WSGIApplication", observers: Sequence[RequestObserver] = ()) -> "WSGIApplication":
    """Sends `X-Request-ID` with every response: the caller's id if it is acceptable, else a new one.

    `current_request_id` has the id until the body is closed. If the application raises an error, it keeps the id,
    because the server logs the error afterwards. The line has method, path, status and milliseconds. The path is
    percent-encoded, as in the request. The query is left out, because it can contain codes and tokens.
    """

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        started_at = perf_counter()
        header = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = header if is_acceptable(header) else uuid4().hex
        current_request_id.set(request_id)
        # They are read first, because the application may change the path.
        method, path, status = environ["REQUEST_METHOD"], environ["PATH_INFO"], ""
        key = id(environ)
        active_requests[key] = ActiveRequest(method, path, request_id, started_at, thread_connection.database)

        def start_logged_response(status_line: str, headers: Headers, *exc_info: Any) -> Any:
            nonlocal status
            status = status_line
            return start_response(status_line, [*headers, ("X-Request-ID", request_id)], *exc_info)

        def end_request() -> None:
            seconds = perf_counter() - started_at
            if log.isEnabledFor(logging.INFO):
                log.handle(make_record(method, path, status, seconds))
            for observe in observers:
                observe(environ, method, int(status[:3]), seconds)
            active_requests.pop(key, None)
            current_request_id.set(NO_REQUEST)

        try:
            body = application(environ, start_logged_response)
        except BaseException:
            active_requests.pop(key, None)
            raise
        return call_on_close(body, end_request)

    return wrapper


def make_record(method: str, path: str, status_line: str, seconds: float) -> logging.LogRecord:
    """Builds a record like log.info, but without the line of the caller: to find it costs as much as to format it."""
    fields = {
        "method": method,
        "path": quote(path, encoding="latin-1", errors="replace"),
        "status": int(status_line[:3]),
        "duration_ms": round(seconds * 1000, 2),
    }
    return log.makeRecord(log.name, logging.INFO, __file__, 0, LINE_FORMAT, (fields,), None, extra={"members": fields})


def call_on_close(body: Iterable[bytes], callback: Callable[[], None]) -> Iterable[bytes]:
    """Returns the body and calls `callback` when it is closed.

    A list is complete, and servers do not close it: the callback is called at once.
    """
    if not isinstance(body, list):
        return ClosingBody(body, callback)
    callback()
    return body


class ClosingBody:
    """A response body that calls `callback` when the server closes it."""

    __slots__ = ("body", "callback")

    def __init__(self, body: Iterable[bytes], callback: Callable[[], None]) -> None:
        self.body = body
        self.callback = callback

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.body)

    def close(self) -> None:
        """The server calls this, also when the client has disconnected (PEP 3333)."""
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.callback()
