"""Logs requests that took long, and how much of it their statements took."""

import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

from library_site.db.statements import statement_totals
from library_site.http.request_log import ActiveRequest, RequestObserver

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

log = logging.getLogger(__name__)

SLOW_LINE_FORMAT = (
    "Slow: %(method)s %(path)s %(status)d %(duration_ms)s ms, %(statements)d statements %(statements_ms)s ms"
)


def log_slower_than(milliseconds: int) -> RequestObserver:
    """The statements are those of `library_site.db.statements.time_statement`."""

    def observe(environ: "WSGIEnvironment", entry: ActiveRequest, route: str, status: int, seconds: float) -> None:
        count, statement_seconds = statement_totals.take()
        if seconds * 1000 < milliseconds:
            return
        fields = {
            "method": entry.method,
            "path": quote(entry.path, encoding="latin-1", errors="replace"),
            "route": route,
            "status": status,
            "duration_ms": round(seconds * 1000, 2),
            "statements": count,
            "statements_ms": round(statement_seconds * 1000, 2),
        }
        log.warning(SLOW_LINE_FORMAT, fields, extra={"fields": fields})

    return observe
