"""Calls the library as its server does, and measures the time of each layer. `benchmarks.profile` starts this process.

It reads a Task from stdin and writes a Profile of each question to stdout, both in JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import count, islice
from operator import attrgetter
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from benchmarks.questions import (
    RARE_WORD,
    BadAnswer,
    LibraryClient,
    Question,
    Request,
    iter_book_creations,
    iter_book_reads,
    iter_title_changes,
    repeat_path,
)
from benchmarks.support.load import get_cpu_seconds
from benchmarks.support.stopwatch import Stopwatch

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

# From the outermost to the innermost. The time of a layer is that of its functions, without the time that they spend
# in functions of other layers. A name that ends in () is a factory: the function that it returns is measured.
LAYERS = {
    "request id and log": ("library_site.http.request_log.log_requests()",),
    "version": ("library_site.http.versioning.negotiate_version()", "library_site.http.versioning.add_headers()"),
    "fast path": ("library_site.http.fast_path.try_fast_path()",),
    "reading the body, choosing the handler": (
        "library_site.http.bodies.buffer_body()",
        "library_site.http.bodies.normalize_content_type()",
        "library_site.http.handlers.route_request()",
    ),
    "Django's handler and middleware": (
        "library_site.http.handlers.APIHandler.__call__",
        "django.http.response.HttpResponseBase.close",
    ),
    "REST framework's dispatch": ("rest_framework.views.APIView.dispatch",),
    "who may, how often, in which version": ("library_site.api.viewsets.APIViewSet.initial",),
    "view": (
        "books.api.v1.views.BookViewSetV1.list",
        "books.api.v1.views.BookViewSetV1.retrieve",
        "books.api.v1.views.BookViewSetV1.create",
        "books.api.v1.views.BookViewSetV1.update",
    ),
    "operation": (
        "books.api.actions.list_books",
        "books.api.actions.read_book",
        "books.api.actions.create_book",
        "books.api.actions.change_book",
    ),
    "credential": ("oauth.authentication.find_credential",),
    "filters": ("books.api.filters.select_books",),
    "decode and check the body": (
        "library_site.api.viewsets.APIViewSet.read_values",
        "books.api.fast_routes.decode_values",
    ),
    "statement of a read": (
        "books.read_model.Representation.fetch_rows",
        "books.read_model.Representation.find_book",
    ),
    "rows, made ready to be encoded": ("books.read_model.Representation.to_structs",),
    "statement of a write": (
        "books.writing.changes.create_book",
        "books.writing.changes.change_book",
        "books.writing.statements.select_book",
        "books.writing.statements.insert_row",
        "books.writing.statements.update_row",
    ),
    "event and deliveries": (
        "books.writing.events.created_data_parts",
        "books.writing.events.updated_event",
        "webhooks.outbox.event_params",
        "webhooks.outbox.new_event_params",
        "webhooks.outbox.WorkerNotifier.notify",
    ),
    "driver": ("library_site.db.sql.PreparedStatement.fetch_all",),
    "round trip to the database": ("library_site.db.sql.PreparedStatement.send",),
    "encode": ("library_site.api.responses.encode_json",),
}
OTHER_CODE = "anything else"
ROW_TITLES = [*LAYERS, OTHER_CODE]
WARM_UP_REQUESTS = 200
LAST_STATEMENT_SQL = """
    SELECT query FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY query_start DESC LIMIT 1
"""


class Task(NamedTuple):
    """Each question is sent `requests` times, or for `seconds`; `environs` are those of the server, by method."""

    books: int
    requests: int
    seconds: float
    postmaster_pid: int
    environs: Mapping[str, Mapping[str, Any]]


class Profile(NamedTuple):
    """The µs of a request.

    `layers` has them by layer. `wall`, `cpu` and `postgresql` are the time, the CPU time and PostgreSQL's CPU time, all
    without measured layers. `statement` is the last one that PostgreSQL ran.
    """

    layers: Mapping[str, float]
    wall: float
    cpu: float
    postgresql: float
    statement: str


class Sample(NamedTuple):
    """The nanoseconds of one request."""

    wall: int
    cpu: int
    layers: Mapping[str, int]


class Samples(NamedTuple):
    """The samples of many requests, and PostgreSQL's µs of CPU for each of them."""

    samples: Sequence[Sample]
    postgresql: float
    statement: str

    def compute_mean(self, get_part: Callable[[Sample], int]) -> float:
        """The mean in µs of the middle half of the requests: sometimes another process has the processor."""
        samples = sorted(self.samples, key=attrgetter("wall"))
        quarter = len(samples) // 4
        return mean(map(get_part, samples[quarter : len(samples) - quarter])) / 1000


def iter_list_requests(_client: LibraryClient) -> Iterator[Request]:
    return (Request(f"/api/books?limit=100&skip={number % 400}") for number in count())


GET_ONE, GET_100 = "GET one", "GET 100"
# Django answers what has an unknown header.
THROUGH_DJANGO = " by Django"
UNKNOWN_HEADER = {"HTTP_COOKIE": "a=b"}
# The first number of the books that are created and changed by Django.
DJANGO_START = 500_000
QUESTIONS: dict[str, Question] = {
    GET_ONE: iter_book_reads,
    GET_100: iter_list_requests,
    "GET by author": repeat_path(f"/api/books?author={RARE_WORD}"),
    # Last: a trigram index stores new rows in a pending list for a while, which slows down searches.
    "PUT": iter_title_changes,
    f"PUT{THROUGH_DJANGO}": partial(iter_title_changes, start=DJANGO_START),
    "POST": iter_book_creations,
    f"POST{THROUGH_DJANGO}": partial(iter_book_creations, start=DJANGO_START),
}


def main() -> None:
    task = Task(**json.load(sys.stdin))
    client = LibraryClient(0, task.books, ())
    profiles = {}
    for title, question in QUESTIONS.items():
        headers = UNKNOWN_HEADER if title.endswith(THROUGH_DJANGO) else {}
        environs = {method: {**environ, **headers} for method, environ in task.environs.items()}
        profiles[title] = profile_requests(question(client), task._replace(environs=environs))
    json.dump(profiles, sys.stdout)


def profile_requests(requests: Iterator[Request], task: Task) -> Profile:
    # Imported here because it sets up Django from the environment, which the parent process does not have.
    from library_site import wsgi

    stopwatch = Stopwatch()
    plain_samples = measure_requests(wsgi.application, requests, task, stopwatch)
    with stopwatch.measure(LAYERS):
        # Built again, from the measured functions.
        application = wsgi.build_application(wsgi.pages_handler)
        layer_samples = measure_requests(application, requests, task, stopwatch)
    layers = {layer: layer_samples.compute_mean(make_layer_getter(layer)) for layer in ROW_TITLES}
    wall, cpu = plain_samples.compute_mean(attrgetter("wall")), plain_samples.compute_mean(attrgetter("cpu"))
    return Profile(layers, wall, cpu, plain_samples.postgresql, plain_samples.statement)


def make_layer_getter(layer: str) -> Callable[[Sample], int]:
    return lambda sample: sample.layers.get(layer, 0)


def measure_requests(
    application: "WSGIApplication", requests: Iterator[Request], task: Task, stopwatch: Stopwatch
) -> Samples:
    for request in islice(requests, WARM_UP_REQUESTS):
        measure_request(application, request, task, stopwatch)
    cpu_before, deadline = get_cpu_seconds(task.postmaster_pid), time.monotonic() + task.seconds
    samples: list[Sample] = []
    while len(samples) < task.requests and time.monotonic() < deadline:
        samples.append(measure_request(application, next(requests), task, stopwatch))
    cpu_us = (get_cpu_seconds(task.postmaster_pid) - cpu_before) / len(samples) * 1e6
    return Samples(samples, cpu_us, get_last_statement())


def measure_request(application: "WSGIApplication", request: Request, task: Task, stopwatch: Stopwatch) -> Sample:
    environ = build_environ(request, task)
    stopwatch.times.clear()
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    stopwatch.enter(OTHER_CODE)
    status, body = call_application(application, environ)
    stopwatch.leave()
    sample = Sample(time.perf_counter_ns() - wall, time.thread_time_ns() - cpu, dict(stopwatch.times))
    if status not in ("200 OK", "201 Created"):
        raise BadAnswer(f"{request.method} {request.path}: {status} {body[:500]!r}")
    return sample


def build_environ(request: Request, task: Task) -> "WSGIEnvironment":
    path, _, query = request.path.partition("?")
    body = json.dumps(request.book).encode() if request.book else b""
    length = {"CONTENT_LENGTH": str(len(body))} if body else {}
    streams = {"wsgi.version": (1, 0), "wsgi.errors": sys.stderr, "wsgi.input": BytesIO(body)}
    address = {"PATH_INFO": path, "QUERY_STRING": query}
    return {**os.environ, **task.environs[request.method], **streams, **length, **address}


def call_application(application: "WSGIApplication", environ: "WSGIEnvironment") -> tuple[str, bytes]:
    """Calls an application that does not use `write` (PEP 3333). Returns the status and the body."""
    statuses: list[str] = []

    def start_response(status: str, _headers: Any, *_exc_info: Any) -> Any:
        statuses.append(status)

    body: Iterable[bytes] = application(environ, start_response)
    try:
        return statuses[-1], b"".join(body)
    finally:
        if hasattr(body, "close"):
            body.close()


def get_last_statement() -> str:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute(LAST_STATEMENT_SQL).fetchone()
    return str(row[0]) if row else ""


if __name__ == "__main__":
    main()
