"""Answers the requests of monitoring programs, before all other middleware.

Their addresses need no credential and accept every Host, without a redirect, a rate limit or a line in the access log.
"""

import hmac
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from library_site.http.errors import UNAVAILABLE_RETRY_AFTER
from library_site.monitoring.readiness import Results, readiness

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-store"}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PROBE_METHODS = ("GET", "HEAD")


class ProbeAnswer(NamedTuple):
    status: HTTPStatus
    headers: dict[str, str]
    body: bytes


Probe = Callable[["WSGIEnvironment"], ProbeAnswer]


class ProbesMiddleware:
    """The first middleware: monitoring programs need no allowed Host, no HTTPS and no line in the access log."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response, self.probes = get_response, list_probes()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path_info not in self.probes:
            return self.get_response(request)
        status, headers, body = answer_probe(self.probes[request.path_info], request.META)
        response = HttpResponse(body, status=status, headers=headers)
        if "Content-Type" not in headers:
            del response["Content-Type"]
        return response


def list_probes() -> dict[str, Probe]:
    probes: dict[str, Probe] = {"/livez": report_liveness, "/readyz": report_readiness}
    return {**probes, "/metrics": report_metrics} if settings.METRICS_TOKEN else probes


def answer_probe(probe: Probe, environ: "WSGIEnvironment") -> ProbeAnswer:
    """Calls the probe for GET and HEAD, and refuses other methods."""
    method = environ["REQUEST_METHOD"]
    status, headers, body = probe(environ) if method in PROBE_METHODS else refuse_method()
    return ProbeAnswer(status, {**headers, "Content-Length": str(len(body))}, b"" if method == "HEAD" else body)


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
