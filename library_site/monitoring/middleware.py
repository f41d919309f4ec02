"""Middleware that watches requests: their ids, the access log, metrics and traces."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import ResolverMatch

from library_site.db.statements import time_statement, wrap_statements
from library_site.http.request_log import ENTRY_KEY, ActiveRequest, RequestObserver, begin_request, end_request
from library_site.http.versions import API_ROOT
from library_site.monitoring import tracing


class RequestLogMiddleware:
    """Sends `X-Request-ID` with every response, and ends the request when its response is complete."""

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response, self.observers, self.traces = get_response, load_observers(), tracing.active_traces
        if self.traces:
            wrap_statements(self.traces.trace_statement)

    def __call__(self, request: HttpRequest) -> Any:
        # Django has decoded the path.
        entry = self.begin(request.META, request.path_info.encode().decode("latin-1"))
        response = self.get_response(request)
        response["X-Request-ID"] = entry.request_id
        route, status = name_route(request.resolver_match), response.status_code
        end = partial(self.end, request.META, entry, route, status)
        response._resource_closers.append(end) if response.streaming else end()
        return response

    def begin(self, environ: dict[str, Any], path: str) -> ActiveRequest:
        """Returns the entry of a request, the same one if the compiled path leaves the request to Django."""
        entry: ActiveRequest | None = environ.get(ENTRY_KEY)
        return entry or begin_request(environ, path, self.traces and self.traces.begin_request(environ))

    def end(self, environ: dict[str, Any], entry: ActiveRequest, route: str, status: int) -> None:
        if self.traces:
            self.traces.end_request(entry.span, environ, route, status)
        end_request(environ, entry, route, status, self.observers)


def name_route(match: ResolverMatch | None) -> str:
    """Returns the name of a pattern with its namespaces, but without the version, which metrics have as a label."""
    if not match:
        return ""
    namespaces = match.namespaces[1:] if match.route.startswith(f"{API_ROOT[1:]}/") else match.namespaces
    return ":".join([*namespaces, match.url_name or match.route])


def load_observers() -> list[RequestObserver]:
    observers: list[RequestObserver] = []
    if settings.METRICS_TOKEN:
        from library_site.monitoring.metrics import get_server_metrics

        if metrics := get_server_metrics():
            observers.append(metrics.observe)
    if settings.SLOW_REQUEST_MS:
        from library_site.monitoring.slow_requests import log_slower_than

        wrap_statements(time_statement)
        observers.append(log_slower_than(settings.SLOW_REQUEST_MS))
    return observers
