"""The id of each request: on its answer, in its environ, and at hand for all that is logged meanwhile."""

import os
import re
from collections.abc import Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from library_site.http.bodies import call_on_close

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

NO_REQUEST = "-"
current_request_id = ContextVar("current", default=NO_REQUEST)
is_acceptable = re.compile(r"[A-Za-z0-9._-]{8,64}").fullmatch


def assign_request_id(application: "WSGIApplication") -> "WSGIApplication":
    """Sends `X-Request-ID` with every answer: the caller's own if it is acceptable, else a new one.

    It stands in `current` until the body is closed. Where the application fails, it stays there: what the server logs
    of the failure comes after.
    """

    def identifying(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        given = environ.get("HTTP_X_REQUEST_ID", "")
        request_id = given if is_acceptable(given) else os.urandom(16).hex()
        current_request_id.set(request_id)

        def starting(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            return start_response(status, [*headers, ("X-Request-ID", request_id)], *exc_info)

        return call_on_close(application(environ, starting), clear_request_id)

    return identifying


def clear_request_id() -> None:
    current_request_id.set(NO_REQUEST)
