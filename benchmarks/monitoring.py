"""Measures what a request pays for being watched: `python -m benchmarks.monitoring` from the root of the repository.

One process answers the same requests with each variant of the application, in blocks that take turns, and measures its
CPU time. The variants' differences are what metrics and traces cost; load on the machine reaches all of them.
"""

import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import competitors
from benchmarks.competitors import OURS, ROOT
from benchmarks.support import databases
from benchmarks.support.arguments import make_integer_parser, note
from tests.support.postgres import start_cluster

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from library_site.monitoring.traces import Traces

BOOKS = 1000
MEASURE = "--measure"
# What each variant has.
VARIANTS = {
    "off": frozenset[str](),
    "again off": frozenset[str](),
    "slow requests": frozenset({"slow requests"}),
    "metrics": frozenset({"metrics"}),
    "traces": frozenset({"traces"}),
    "all": frozenset({"slow requests", "metrics", "traces"}),
}
Environ = dict[str, Any]


def main() -> None:
    parser = ArgumentParser(prog="python -m benchmarks.monitoring", description=__doc__)
    parser.add_argument("--blocks", type=make_integer_parser(2, 10_000), default=60, help="of each variant")
    parser.add_argument("--requests", type=make_integer_parser(10, 100_000), default=200, help="in each block")
    parser.add_argument(MEASURE, action="store_true", help="for its own child process, which has the environment")
    options = parser.parse_args()
    if options.measure:
        measure(options.blocks, options.requests)
        return
    with start_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        note(f"seeding {BOOKS:,} books")
        databases.create_library_database(cluster, BOOKS)
        environment = competitors.build_environment(cluster.url(OURS))
        environment["SLOW_REQUEST_MS"] = "0"
        environment |= {"PROMETHEUS_MULTIPROC_DIR": folder, "DJANGO_SETTINGS_MODULE": "library_site.settings"}
        subprocess.run(
            [sys.executable, "-m", "benchmarks.monitoring", *sys.argv[1:], MEASURE],
            cwd=ROOT,
            env=environment,
            check=True,
        )


def measure(blocks: int, requests: int) -> None:
    import django

    django.setup(set_prefix=False)
    for title, build_environ in {"GET a book": build_read, "PUT a book": build_change}.items():
        times: dict[str, list[float]] = {name: [] for name in VARIANTS}
        applications = {name: build_variant(name) for name in VARIANTS}
        for _ in range(blocks):
            for name, application in applications.items():
                with override(name):
                    times[name].append(measure_block(application, build_environ, requests))
        print(f"{title}, µs of CPU: " + ", ".join(f"{name} {min(t):.1f}/{median(t):.1f}" for name, t in times.items()))
    print("(the fastest block / the median)")


def build_variant(name: str) -> "WSGIApplication":
    from library_site.wsgi import build_application, pages_handler

    with override(name):
        return build_application(pages_handler)


@contextmanager
def override(name: str) -> Iterator[None]:
    """The settings of a variant, and its wrappers of statements."""
    from django.db import connection
    from django.test.utils import override_settings

    from library_site.db.statements import statement_wrappers, time_statement
    from library_site.monitoring import tracing

    parts = VARIANTS[name]
    traces = start_traces() if "traces" in parts else None
    wrappers = [*([time_statement] if "slow requests" in parts else []), *([traces.trace_statement] if traces else [])]
    tracing.active_traces = traces
    statement_wrappers[:] = connection.execute_wrappers[:] = wrappers
    options = {
        "METRICS_TOKEN": "a-token-of-the-benchmark" if "metrics" in parts else "",
        "SLOW_REQUEST_MS": 1000 if "slow requests" in parts else 0,
    }
    with override_settings(**options):
        yield


@cache
def start_traces() -> "Traces":
    """Traces every request, and discards the spans."""
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    from library_site.monitoring.tracing import start_tracing

    class DiscardingExporter(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    return start_tracing(BatchSpanProcessor(DiscardingExporter()))


def measure_block(application: "WSGIApplication", build_environ: Callable[[], Environ], requests: int) -> float:
    """Returns the microseconds of a request. Some requests before teach the fast path its headers."""
    for _ in range(3):
        send(application, build_environ())
    environs = [build_environ() for _ in range(requests)]
    start = time.process_time()
    for environ in environs:
        send(application, environ)
    return (time.process_time() - start) / requests * 1e6


def send(application: "WSGIApplication", environ: Environ) -> None:
    def start_response(status: str, headers: Any, *_: Any) -> Any:
        if status[:3] != "200":
            raise RuntimeError(status)

    body = application(environ, start_response)
    b"".join(body)
    if hasattr(body, "close"):
        body.close()


def build_read() -> Environ:
    return build_environ("GET", b"")


def build_change() -> Environ:
    return build_environ("PUT", b'{"year":%d}' % (time.perf_counter_ns() % 2000))


def build_environ(method: str, body: bytes) -> Environ:
    return {
        **os.environ,
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": "/api/books/7",
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_ACCEPT": "*/*",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        **({"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body))} if body else {}),
    }


if __name__ == "__main__":
    main()
