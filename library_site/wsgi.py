"""Builds the WSGI application from its layers."""

import gc
import os
from typing import TYPE_CHECKING

import django
from django.conf import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from library_site.http.request_log import RequestObserver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "library_site.settings")


def build_application(pages: "WSGIApplication") -> "WSGIApplication":
    """Wraps the handlers for programs and for pages in layers, from the innermost to the outermost."""
    # These modules can be imported only after Django is set up.
    from library_site.api.compiled_path import answer_compiled
    from library_site.db.statements import wrap_statements
    from library_site.http.caching import set_caching
    from library_site.http.handlers import APIHandler, has_stock_middleware, route_request
    from library_site.http.request_log import log_requests
    from library_site.http.transfer.bodies import buffer_body, normalize_content_type
    from library_site.http.transfer.compression import compress_responses
    from library_site.http.versioning import negotiate_version
    from library_site.http.versions import DEFAULT_VERSION, VERSIONS
    from library_site.monitoring import tracing
    from library_site.monitoring.probes import answer_probes

    application = buffer_body(normalize_content_type(route_request(APIHandler(), pages)))
    if settings.COMPILED_PATH and has_stock_middleware():
        application = answer_compiled(application, VERSIONS.values())
    application = set_caching(negotiate_version(application, VERSIONS, DEFAULT_VERSION))
    if settings.GZIP:
        application = compress_responses(application)
    if tracing.active_traces:
        wrap_statements(tracing.active_traces.trace_statement)
        application = tracing.active_traces.trace_requests(application)
    return answer_probes(log_requests(application, load_observers()))


def load_observers() -> "list[RequestObserver]":
    observers: list[RequestObserver] = []
    if settings.METRICS_TOKEN:
        from library_site.monitoring.metrics import get_server_metrics

        if metrics := get_server_metrics():
            observers.append(metrics.observe)
    if settings.SLOW_REQUEST_MS:
        from library_site.db.statements import time_statement, wrap_statements
        from library_site.monitoring.slow_requests import log_slower_than

        wrap_statements(time_statement)
        observers.append(log_slower_than(settings.SLOW_REQUEST_MS))
    return observers


django.setup(set_prefix=False)
if settings.TRACES_ENABLED:
    # Before the application is built, which has a layer for it.
    from library_site.monitoring.tracing import start_tracing

    start_tracing()
# The handler can be imported only after Django is set up.
from library_site.http.handlers import PagesHandler  # noqa: E402

pages_handler = PagesHandler()
application = build_application(pages_handler)
# Imported modules are never garbage. To scan them again and again takes a twentieth of the time of a write.
gc.freeze()
gc.set_threshold(20_000)
