"""Counts requests and reports metrics in Prometheus' format.

Each process of the server writes its counts to files in a shared folder, and a scrape adds them up. The functions of
METRIC_SOURCES read the metrics of the database and of other services during the scrape.
"""

import logging
import os
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.module_loading import import_string
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from library_site.http.errors import DATABASE_ERROR_KEY, DATABASE_ERRORS
from library_site.http.request_log import METHODS, ActiveRequest, active_requests
from library_site.http.versioning import find_version
from library_site.monitoring.metrics_files import (
    DIRECTORY_VARIABLE,
    SERIES_SIZE,
    allocate,
    create_files,
    forget_dead_processes,
)
from library_site.monitoring.readiness import SharedRun, readiness

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

log = logging.getLogger(__name__)

REQUEST_LABELS = ("method", "route", "version", "status")
# In seconds. Each bucket adds a line for every combination of labels.
BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2, 10)
# Seconds between updates of the number of busy threads: an update at each request would cost it two writes.
SAMPLE_INTERVAL = 1.0
# Seconds for which the result of a source is reused, and that a scrape waits for a source.
SOURCES_LIFETIME, SOURCES_TIMEOUT = 5.0, 2.0

# Reads metrics for a scrape, in a separate thread with its own connection. It may raise any exception.
MetricSource = Callable[[], Iterable[Metric]]


class ServerMetrics:
    """The metrics that the processes of the server count."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.durations = Histogram(
            "library_request_duration_seconds",
            "Requests and the seconds until their answers were complete.",
            REQUEST_LABELS,
            buckets=BUCKETS,
            registry=registry,
        )
        self.database_errors = Counter(
            "library_database_errors",
            "Requests that failed at the database: it was unavailable or busy, or refused a statement.",
            ["kind"],
            registry=registry,
        )
        self.refusals = Counter(
            "library_limit_refusals",
            "Requests that were refused because a caller sent too many (429).",
            registry=registry,
        )
        # They exist before the first event: Prometheus sees no increase in a series that begins with 1.
        for kind in DATABASE_ERRORS:
            self.database_errors.labels(kind)
        self.busy_threads = Gauge(
            "library_threads_busy",
            "Threads that answer a request.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        # A cache: to find a child by its labels costs as much as to observe a request.
        self.children: dict[tuple[object, ...], Histogram] = {}
        self.lock = Lock()

    def observe(
        self, environ: "WSGIEnvironment", entry: ActiveRequest, route: str, status: int, seconds: float
    ) -> None:
        version = find_version(environ)
        # Requests for files and for unknown addresses reach no view.
        route = route or ("static" if entry.path.startswith(settings.STATIC_URL) else "none")
        # A client can send any method; others are counted together.
        method = entry.method if entry.method in METHODS else "other"
        key = method, route, version.number if version else "", status
        child = self.children.get(key) or self.add_child(key)
        if child:
            child.observe(seconds)
        if error := environ.get(DATABASE_ERROR_KEY):
            self.database_errors.labels(error).inc()
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self.refusals.inc()

    def add_child(self, key: tuple[object, ...]) -> Histogram | None:
        """Returns None if the disk is full: then the request is not counted."""
        with self.lock:
            try:
                if directory := find_directory():
                    allocate(directory, "histogram", (len(self.children) + 1) * SERIES_SIZE)
            except OSError:
                return None
            return self.children.setdefault(key, self.durations.labels(*key))

    def sample_threads(self) -> None:
        self.busy_threads.set(len(active_requests))

    def sample_regularly(self) -> None:
        while True:
            self.sample_threads()
            time.sleep(SAMPLE_INTERVAL)


class ScrapeCollector(Collector):
    """Reads the sources during a scrape. A source that fails or hangs is left out."""

    def collect(self) -> Iterable[Metric]:
        runs = {name: get_source_run(name) for name in settings.METRIC_SOURCES}
        # They run in parallel, also with the checks of /readyz: if the database hangs, Redis is still reported.
        for run in runs.values():
            run.begin()
        yield GaugeMetricFamily(
            "library_threads", "Threads of the server.", value=settings.WEB_CONCURRENCY * settings.WEB_THREADS
        )
        checks = GaugeMetricFamily("library_check_up", "Whether a check of /readyz passes.", labels=["check"])
        for name, has_passed in readiness.get_results().items():
            checks.add_metric([name], has_passed)
        yield checks
        sources = GaugeMetricFamily("library_source_up", "Whether a source of metrics answered.", labels=["source"])
        for name, run in runs.items():
            metrics = run.get()
            sources.add_metric([name], metrics is not None)
            yield from metrics or ()
        yield sources


@cache
def get_server_metrics() -> ServerMetrics | None:
    """Returns None if the disk is full. The library continues without these metrics."""
    if directory := find_directory():
        try:
            create_files(directory)
        except OSError as error:
            log.warning("This process counts no requests for /metrics: %s: %s.", directory, error.strerror)
            return None
    return ServerMetrics(CollectorRegistry())


def find_directory() -> Path | None:
    """Returns the folder that the processes of `serve` share."""
    name = os.environ.get(DIRECTORY_VARIABLE)
    return Path(name) if name else None


def render_metrics() -> bytes:
    metrics = get_server_metrics()
    if metrics:
        metrics.sample_threads()
    registry = CollectorRegistry()
    registry.register(ScrapeCollector())
    directory = find_directory()
    if directory and directory.exists():
        forget_dead_processes(directory)
        MultiProcessCollector(registry, str(directory))  # type: ignore[no-untyped-call]  # it has no types
    own = generate_latest(metrics.registry) if metrics and not directory else b""
    return generate_latest(registry) + own


@cache
def get_source_run(name: str) -> SharedRun[list[Metric] | None]:
    """`name` is the dotted name of a MetricSource."""
    return SharedRun(partial(read_source, name), SOURCES_LIFETIME, SOURCES_TIMEOUT)


def read_source(name: str) -> list[Metric] | None:
    """Returns None if the source fails."""
    source: MetricSource = import_string(name)
    try:
        return list(source())
    except Exception as error:
        log.warning("A source of metrics failed: %s", type(error).__name__)
        return None


def start_sampling() -> None:
    """Keeps the gauge of busy threads up to date until the process ends."""
    if metrics := get_server_metrics():
        Thread(target=metrics.sample_regularly, name="metrics", daemon=True).start()
