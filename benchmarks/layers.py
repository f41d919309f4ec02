"""Calls the library as its server does, and says where the microseconds go: a process that `benchmarks.profile` starts.

It reads a Task from stdin and writes a Profile of each question to stdout, both in JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import count, islice
from operator import attrgetter
from statistics import mean
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg

from benchmarks.load import cpu_seconds
from benchmarks.questions import RARE, BadAnswer, Library, Request, any_book, asked, new_books, new_titles
from benchmarks.stopwatch import Stopwatch

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

# From the outermost in. A layer's time is that of these functions, but for what they spend in others named here.
# A name that ends in () makes the function that is meant.
LAYERS = {
    "request id and log": (
        "library_site.http.request_id.assign_request_id()",
        "library_site.http.access_log.log_access()",
    ),
    "version": ("library_site.http.versioning.negotiate_version()", "library_site.http.versioning.add_headers()"),
    "front": ("library_site.http.fast_path.try_fast_path()",),
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
        "books.api.fast_routes.read_book",
        "books.api.fast_routes.list_books",
    ),
    "filters": ("books.api.filters.StrictFilterBackend.filter_queryset",),
    "decode and check the body": ("library_site.api.viewsets.APIViewSet.read_values",),
    "statement of a read": (
        "books.read_model.Representation.fetch_rows",
        "books.read_model.Representation.fetch_matching",
        "books.read_model.Representation.find",
    ),
    "rows, made ready to be encoded": ("books.read_model.Representation.to_structs",),
    "statement of a write": (
        "books.changes.create_book",
        "books.changes.change_book",
        "books.write_statements.find_book",
        "books.write_statements.insert_with_event",
        "books.write_statements.update_with_event",
    ),
    "event and deliveries": (
        "books.events.created_data_parts",
        "books.events.updated_event",
        "webhooks.outbox.event_params",
        "webhooks.outbox.new_event_params",
        "webhooks.outbox.WorkerNotifier.notify",
    ),
    "driver": ("library_site.db.sql.PreparedStatement.fetch_all",),
    "round trip to the database": ("library_site.db.sql.PreparedStatement.send",),
    "encode": ("library_site.api.responses.encode_json",),
}
ELSEWHERE = "anything else"
ROWS = [*LAYERS, ELSEWHERE]
WARM_UP = 200
LAST_STATEMENT = """
    SELECT query FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
    ORDER BY query_start DESC LIMIT 1
"""


class Task(NamedTuple):
    """Each question is asked `requests` times, or for `seconds`; `environs` are the server's, by method."""

    books: int
    requests: int
    seconds: float
    postmaster: int
    environs: Mapping[str, Mapping[str, Any]]


class Profile(NamedTuple):
    """µs of a request: by layer; by the clock and of CPU while no layer is measured; of CPU in PostgreSQL meanwhile.

    `statement` is the last that PostgreSQL was given.
    """

    layers: Mapping[str, float]
    wall: float
    cpu: float
    postgresql: float
    statement: str


class Sample(NamedTuple):
    """Nanoseconds of one request."""

    wall: int
    cpu: int
    layers: Mapping[str, int]


class Samples(NamedTuple):
    """Of many requests, with PostgreSQL's µs of CPU for one."""

    samples: Sequence[Sample]
    postgresql: float
    statement: str

    def mean(self, part: Callable[[Sample], int]) -> float:
        """In µs, of the middle half of the requests: now and then something else has the processor."""
        ordered = sorted(self.samples, key=attrgetter("wall"))
        quarter = len(ordered) // 4
        return mean(map(part, ordered[quarter : len(ordered) - quarter])) / 1000


def parts(_library: Library) -> Iterator[Request]:
    return (Request(f"/api/books?limit=100&skip={number % 400}") for number in count())


GET_ONE, GET_100 = "GET one", "GET 100"
QUESTIONS = {
    GET_ONE: any_book,
    GET_100: parts,
    "GET by author": asked(f"/api/books?author={RARE}"),
    # Last: PostgreSQL keeps what is new beside an index of trigrams for a while, and looks through it.
    "PUT": new_titles,
    "POST": new_books,
}


def main() -> None:
    task = Task(**json.load(sys.stdin))
    library = Library(0, task.books, ())
    json.dump({title: profile(question(library), task) for title, question in QUESTIONS.items()}, sys.stdout)


def profile(requests: Iterator[Request], task: Task) -> Profile:
    # Sets Django up, by the environment of this process; the parent has another.
    from library_site import wsgi

    watch = Stopwatch()
    plain = answered(wsgi.application, requests, task, watch)
    with watch.measuring(LAYERS):
        # Put together anew, of what is measured now.
        application = wsgi.build_application(wsgi.pages_handler)
        measured = answered(application, requests, task, watch)
    layers = {layer: measured.mean(within(layer)) for layer in ROWS}
    wall, cpu = plain.mean(attrgetter("wall")), plain.mean(attrgetter("cpu"))
    return Profile(layers, wall, cpu, plain.postgresql, plain.statement)


def within(layer: str) -> Callable[[Sample], int]:
    return lambda sample: sample.layers.get(layer, 0)


def answered(application: "WSGIApplication", requests: Iterator[Request], task: Task, watch: Stopwatch) -> Samples:
    for request in islice(requests, WARM_UP):
        answer(application, request, task, watch)
    deadline, before, samples = time.monotonic() + task.seconds, cpu_seconds(task.postmaster), list[Sample]()
    while len(samples) < task.requests and time.monotonic() < deadline:
        samples.append(answer(application, next(requests), task, watch))
    return Samples(samples, (cpu_seconds(task.postmaster) - before) / len(samples) * 1e6, last_statement())


def answer(application: "WSGIApplication", request: Request, task: Task, watch: Stopwatch) -> Sample:
    environ = server_environ(request, task)
    watch.spent.clear()
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    watch.enter(ELSEWHERE)
    status, body = called(application, environ)
    watch.leave()
    sample = Sample(time.perf_counter_ns() - wall, time.thread_time_ns() - cpu, dict(watch.spent))
    if status not in ("200 OK", "201 Created"):
        raise BadAnswer(f"{request.method} {request.path}: {status} {body[:500]!r}")
    return sample


def server_environ(request: Request, task: Task) -> "WSGIEnvironment":
    path, _, query = request.path.partition("?")
    body = json.dumps(request.book).encode() if request.book else b""
    length = {"CONTENT_LENGTH": str(len(body))} if body else {}
    own = {"wsgi.version": (1, 0), "wsgi.errors": sys.stderr, "wsgi.input": BytesIO(body)}
    return {**os.environ, **task.environs[request.method], **own, **length, "PATH_INFO": path, "QUERY_STRING": query}


def called(application: "WSGIApplication", environ: "WSGIEnvironment") -> tuple[str, bytes]:
    """As PEP 3333 has it, for applications that do not write."""
    statuses: list[str] = []

    def start_response(status: str, _headers: Any, *_exc_info: Any) -> Any:
        statuses.append(status)

    answered: Iterable[bytes] = application(environ, start_response)
    try:
        return statuses[-1], b"".join(answered)
    finally:
        if hasattr(answered, "close"):
            answered.close()


def last_statement() -> str:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute(LAST_STATEMENT).fetchone()
    return str(row[0]) if row else ""


if __name__ == "__main__":
    main()
