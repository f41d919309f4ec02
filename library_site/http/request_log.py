"""Gives each request an id, which its response has too, writes the access log, and lists the requests in progress."""

import logging
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from django.db.backends.base.base import BaseDatabaseWrapper

from library_site.db.sql import thread_connection

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

log = logging.getLogger("library_site.access")

LINE_FORMAT = "%(method)s %(path)s %(status)d %(duration_ms)s ms"
NO_REQUEST = "-"
current_request_id = ContextVar("current_request_id", default=NO_REQUEST)
# The environ's keys of the request's ActiveRequest, and of its VersionChoice (`library_site.http.versioning`).
ENTRY_KEY, VERSION_KEY = "library.request", "library.version"
# The methods that HTTP defines and the library may answer.
METHODS = frozenset(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
is_acceptable = re.compile(r"[A-Za-z0-9._-]{8,64}").fullmatch


class ActiveRequest(NamedTuple):
    """A request in progress; `began_at` comes from perf_counter, `database` is the connection of its thread, and `span`
    belongs to its trace.
    """

    method: str
    path: str
    request_id: str
    began_at: float
    database: BaseDatabaseWrapper
    span: Any = None


# An alias, because Python evaluates the annotations of an inner function, and builds their types, for each request.
Headers = list[tuple[str, str]]
# Called at the end of a request with its environ, the name of its route, status and duration in seconds.
RequestObserver = Callable[["WSGIEnvironment", ActiveRequest, str, int, float], None]
# By the id of the environ.
active_requests: dict[int, ActiveRequest] = {}


def begin_request(environ: dict[str, Any], path: str, span: Any) -> ActiveRequest:
    """Returns the entry of a request, which has the caller's id if it is acceptable, else a new one.

    `current_request_id` has the id until the request ends. `path` is as WSGI passes it: bytes as Latin-1 characters.
    """
    header = environ.get("HTTP_X_REQUEST_ID", "")
    request_id = header if is_acceptable(header) else uuid4().hex
    current_request_id.set(request_id)
    began_at, database = perf_counter(), thread_connection.database
    entry = ActiveRequest(environ["REQUEST_METHOD"], path, request_id, began_at, database, span)
    environ[ENTRY_KEY] = active_requests[id(environ)] = entry
    return entry


def end_request(
    environ: dict[str, Any], entry: ActiveRequest, route: str, status: int, observers: Sequence[RequestObserver]
) -> None:
    """Writes the line with method, path, status and milliseconds, and calls the observers.

    The path is percent-encoded, as in the request. The query is left out, because it can contain codes and tokens.
    """
    seconds = perf_counter() - entry.began_at
    if log.isEnabledFor(logging.INFO):
        log.handle(make_record(entry, status, seconds))
    for observe in observers:
        observe(environ, entry, route, status, seconds)
    active_requests.pop(id(environ), None)
    current_request_id.set(NO_REQUEST)


def make_record(entry: ActiveRequest, status: int, seconds: float) -> logging.LogRecord:
    """Builds a record like log.info, but without the line of the caller: to find it costs as much as to format it."""
    fields = {
        "method": entry.method,
        "path": quote(entry.path, encoding="latin-1", errors="replace"),
        "status": status,
        "duration_ms": round(seconds * 1000, 2),
    }
    return log.makeRecord(log.name, logging.INFO, __file__, 0, LINE_FORMAT, (fields,), None, extra={"fields": fields})
