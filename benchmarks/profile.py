"""Measures the time of a request by package: `python -m benchmarks.profile` from the root of the repository.

The library answers in this process. Its time is measured without a profiler; which package takes which share of it,
with one. The time of C functions, and the wait for the database, belong to the function that calls them.
"""

import json
import os
import sys
import sysconfig
import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from cProfile import Profile
from functools import partial
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from statistics import mean
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import competitors
from benchmarks.competitors import OURS, ROOT
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
from benchmarks.support import databases, load
from benchmarks.support.arguments import Number, note, parse_options
from tests.support.postgres import start_cluster

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

WARM_UP_REQUESTS = 200
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
# Django answers what the compiled path does not take.
THROUGH_DJANGO = " by Django"
DJANGO_HEADERS = {"HTTP_EXPECT": "100-continue"}
# The first number of the books that are created and changed by Django.
DJANGO_START = 500_000


def iter_list_requests(_client: LibraryClient) -> Iterator[Request]:
    return (Request(f"/api/books?limit=100&skip={number % 400}") for number in count())


QUESTIONS: dict[str, Question] = {
    "GET one": iter_book_reads,
    "GET 100": iter_list_requests,
    "GET by author": repeat_path(f"/api/books?author={RARE_WORD}"),
    # Last: a trigram index stores new rows in a pending list for a while, which slows down searches.
    "PUT": iter_title_changes,
    f"PUT{THROUGH_DJANGO}": partial(iter_title_changes, start=DJANGO_START),
    "POST": iter_book_creations,
    f"POST{THROUGH_DJANGO}": partial(iter_book_creations, start=DJANGO_START),
}


class Times(NamedTuple):
    """The µs of a request by the clock, the CPU time of the library and of PostgreSQL, and the shares of packages."""

    wall: float
    cpu: float
    postgresql: float
    shares: Mapping[str, float]


def main() -> None:
    options = parse_options(
        "benchmarks.profile",
        __doc__,
        books=Number(1000, 10_000_000, 100_000, "in the database"),
        requests=Number(10, 100_000, 2000, "of each kind"),
    )
    load.require_postgres()
    with start_cluster(shared_buffers="256MB") as cluster:
        note(f"seeding {options.books:,} books")
        databases.create_library_database(cluster, options.books)
        os.environ.update(competitors.build_environment(cluster.url(OURS)))
        # Imported here because it reads the environment.
        from library_site.wsgi import application

        postmaster_pid = load.get_postmaster_pid(cluster)
        times = {title: measure_question(application, title, options, postmaster_pid) for title in QUESTIONS}
    Console(width=120).print("\nµs of a request, by the clock but for the last two rows", build_table(times), sep="\n")


def measure_question(application: "WSGIApplication", title: str, options: Namespace, postmaster_pid: int) -> Times:
    note(title)
    headers = DJANGO_HEADERS if title.endswith(THROUGH_DJANGO) else {}
    requests = QUESTIONS[title](LibraryClient(0, options.books, ()))
    environs = (build_environ(request, headers) for request in requests)
    for environ in islice(environs, WARM_UP_REQUESTS):
        send(application, environ)
    cpu_before = load.get_cpu_seconds(postmaster_pid)
    samples = sorted(measure_request(application, environ) for environ in islice(environs, options.requests))
    postgresql = (load.get_cpu_seconds(postmaster_pid) - cpu_before) / options.requests
    # Sometimes another process has the processor.
    middle = samples[len(samples) // 4 : -len(samples) // 4]
    wall, cpu = (mean(values) / 1000 for values in zip(*middle, strict=True))
    profiler = Profile(builtins=False)
    for environ in islice(environs, options.requests):
        profiler.runcall(send, application, environ)
    return Times(wall, cpu, postgresql * 1e6, compute_shares(profiler))


def build_environ(request: Request, headers: Mapping[str, str]) -> "WSGIEnvironment":
    path, _, query = request.path.partition("?")
    body = json.dumps(request.book).encode() if request.book else b""
    body_headers = {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body))} if body else {}
    return {
        **os.environ, "REQUEST_METHOD": request.method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query,
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "8000", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000", "HTTP_ACCEPT": "*/*", "wsgi.url_scheme": "http", "wsgi.errors": sys.stderr,
        "wsgi.input": BytesIO(body), **body_headers, **headers,
    }  # fmt: skip


def measure_request(application: "WSGIApplication", environ: "WSGIEnvironment") -> tuple[int, int]:
    """Returns the nanoseconds by the clock, and those of the CPU."""
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    send(application, environ)
    return time.perf_counter_ns() - wall, time.thread_time_ns() - cpu


def send(application: "WSGIApplication", environ: "WSGIEnvironment") -> None:
    """Raises BadAnswer. The application does not use `write` (PEP 3333)."""
    statuses: list[str] = []

    def start_response(status: str, *_: object) -> Any:
        statuses.append(status)

    body: Iterable[bytes] = application(environ, start_response)
    content = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    if statuses[-1] not in ("200 OK", "201 Created"):
        raise BadAnswer(f"{environ['PATH_INFO']}: {statuses[-1]} {content[:500]!r}")


def compute_shares(profiler: Profile) -> dict[str, float]:
    """Returns the share of each package in the time of all functions."""
    seconds: dict[str, float] = defaultdict(float)
    for entry in profiler.getstats():
        if isinstance(entry.code, CodeType):
            seconds[name_package(entry.code.co_filename)] += entry.inlinetime
    return {name: value / sum(seconds.values()) for name, value in seconds.items()}


def name_package(file: str) -> str:
    """Returns the room of a module of the library, and the name of any other package."""
    path = Path(file)
    if path.is_relative_to(SITE_PACKAGES):
        return path.relative_to(SITE_PACKAGES).parts[0]
    if path.is_relative_to(ROOT) and not file.startswith(__file__):
        return ".".join(path.relative_to(ROOT).with_suffix("").parts[:2])
    return "anything else"


def build_table(times: Mapping[str, Times]) -> Table:
    table = Table("", *times, box=box.MARKDOWN)
    packages = {name: [row.shares.get(name, 0) * row.wall for row in times.values()] for name in list_packages(times)}
    for name, values in sorted(packages.items(), key=lambda item: -sum(item[1])):
        table.add_row(name, *map(format_microseconds, values))
    for name, values in (
        ("together", [row.wall for row in times.values()]),
        ("CPU of the library", [row.cpu for row in times.values()]),
        ("CPU of PostgreSQL", [row.postgresql for row in times.values()]),
    ):
        table.add_row(name, *map(format_microseconds, values))
    return table


def list_packages(times: Mapping[str, Times]) -> set[str]:
    """Lists those that take a hundredth of a kind of request, or more."""
    return {name for row in times.values() for name, share in row.shares.items() if share >= 0.01}


def format_microseconds(microseconds: float) -> str:
    return f"{microseconds:,.0f}" if microseconds >= 0.5 else "·"


if __name__ == "__main__":
    main()
