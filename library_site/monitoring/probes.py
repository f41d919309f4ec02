"""Answers the requests of monitoring programs, before all other middleware.

Their addresses need no credential and accept every Host, without a redirect, a rate limit or a line in the access log.
"""

import hmac
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from library_site.http.errors import UNAVAILABLE_RETRY_AFTER
from library_site.monitoring.readiness import Results, readiness

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Probe = Callable[[HttpRequest], HttpResponse]


class ProbesMiddleware:
    """The first middleware: monitoring programs need no allowed Host, no HTTPS and no line in the access log."""

    def __init__(self, get_response: Probe) -> None:
        self.get_response, self.probes = get_response, list_probes()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not (probe := self.probes.get(request.path_info)):
            return self.get_response(request)
        response = require_safe(probe)(request)
        response["Content-Length"] = str(len(response.content))
        if request.method == "HEAD":
            response.content = b""
        return response


def list_probes() -> dict[str, Probe]:
    probes: dict[str, Probe] = {"/livez": report_liveness, "/readyz": report_readiness}
    return {**probes, "/metrics": report_metrics} if settings.METRICS_TOKEN else probes


def report_liveness(request: HttpRequest) -> HttpResponse:
    """Reports that this process can answer."""
    return format_results({})


def report_readiness(request: HttpRequest) -> HttpResponse:
    return format_results(readiness.get_results())


def format_results(results: Results) -> HttpResponse:
    words = {True: "ok", False: "unavailable"}
    is_available = all(results.values())
    body = {"status": words[is_available], "checks": {name: words[passed] for name, passed in results.items()}}
    headers = {"Cache-Control": "no-store", **({} if is_available else {"Retry-After": UNAVAILABLE_RETRY_AFTER})}
    return JsonResponse(body, status=200 if is_available else 503, headers=headers)


def report_metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text format, for clients with METRICS_TOKEN."""
    expected = f"Bearer {settings.METRICS_TOKEN}"
    if not hmac.compare_digest(request.headers.get("Authorization", "").encode(), expected.encode()):
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    # The import costs time and memory, and must follow `serve`, which sets a variable for it.
    from library_site.monitoring.metrics import render_metrics

    return HttpResponse(render_metrics(), METRICS_TYPE)
