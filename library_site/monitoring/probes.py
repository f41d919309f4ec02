"""Answers the requests of monitoring programs, before all other layers.

Their addresses need no credential and accept every Host, without a redirect, a rate limit or a line in the access log.
"""

import hmac
import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings

from library_site.http.errors import UNAVAILABLE_RETRY_AFTER
from library_site.monitoring.readiness import Results, readiness

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-store"}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PROBE_METHODS = ("GET", "HEAD")


class ProbeAnswer(NamedTuple):
    status: HTTPStatus
    headers: dict[str, str]
    body: bytes


Probe = Callable[["WSGIEnvironment"], ProbeAnswer]


def answer_probes(application: "WSGIApplication") -> "WSGIApplication":
    """Answers GET and HEAD of the probes' addresses; the application answers all others."""
    probes: dict[str, Probe] = {"/livez": report_liveness, "/readyz": report_readiness}
    if settings.METRICS_TOKEN:
        probes["/metrics"] = report_metrics

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        probe = probes.get(environ["PATH_INFO"])
        if probe is None:
            return application(environ, start_response)
        method = environ["REQUEST_METHOD"]
        status, headers, body = probe(environ) if method in PROBE_METHODS else refuse_method()
        headers["Content-Length"] = str(len(body))
        start_response(f"{status.value} {status.phrase}", list(headers.items()))
        return [b"" if method == "HEAD" else body]

    return wrapper


def report_liveness(environ: "WSGIEnvironment") -> ProbeAnswer:
    """Reports that this process can answer."""
    return format_results({})


def report_readiness(environ: "WSGIEnvironment") -> ProbeAnswer:
    return format_results(readiness.get_results())


def format_results(results: Results) -> ProbeAnswer:
    words = {True: "ok", False: "unavailable"}
    is_available = all(results.values())
    body = {"status": words[is_available], "checks": {name: words[passed] for name, passed in results.items()}}
    status = HTTPStatus.OK if is_available else HTTPStatus.SERVICE_UNAVAILABLE
    headers = JSON_HEADERS | ({} if is_available else {"Retry-After": UNAVAILABLE_RETRY_AFTER})
    return ProbeAnswer(status, headers, json.dumps(body).encode())


def report_metrics(environ: "WSGIEnvironment") -> ProbeAnswer:
    """Prometheus' text format, for clients with METRICS_TOKEN."""
    expected = f"Bearer {settings.METRICS_TOKEN}"
    if not hmac.compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), expected.encode()):
        return ProbeAnswer(HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": "Bearer"}, b"")
    # The import costs time and memory, and must follow `serve`, which sets a variable for it.
    from library_site.monitoring.metrics import render_metrics

    return ProbeAnswer(HTTPStatus.OK, {"Content-Type": METRICS_TYPE}, render_metrics())


def refuse_method() -> ProbeAnswer:
    return ProbeAnswer(HTTPStatus.METHOD_NOT_ALLOWED, {"Allow": ", ".join(PROBE_METHODS)}, b"")
