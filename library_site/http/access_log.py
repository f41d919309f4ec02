"""The access log: one line for each request."""

import logging
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from library_site.http.bodies import call_on_close

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger("library_site.access")

LINE_FORMAT = "%(method)s %(path)s %(status)d %(duration_ms)s ms"


def log_access(application: "WSGIApplication") -> "WSGIApplication":
    """Logs method, path, status and milliseconds once the body is closed.

    The path is percent-encoded, as it came. Its query is left out: codes and tokens travel there.
    """

    def recording(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not log.isEnabledFor(logging.INFO):
            return application(environ, start_response)
        begun = perf_counter()
        # Taken before the application, which may rewrite the path.
        path = quote(environ["PATH_INFO"], encoding="latin-1", errors="replace")
        line: dict[str, Any] = {"method": environ["REQUEST_METHOD"], "path": path}

        def starting(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            line["status"] = int(status[:3])
            return start_response(status, headers, *exc_info)

        def done() -> None:
            line["duration_ms"] = round((perf_counter() - begun) * 1000, 2)
            # As log.info does, but for looking up where it was called: that would cost as much as the formatting.
            record = log.makeRecord(
                log.name, logging.INFO, __file__, 0, LINE_FORMAT, (line,), None, extra={"members": line}
            )
            log.handle(record)

        return call_on_close(application(environ, starting), done)

    return recording
