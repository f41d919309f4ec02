"""Bursts of clients with quiet seconds between them: no process ends, and connections do not add up."""

import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice
from typing import Any, NamedTuple

import httpx

from benchmarks import competitors
from benchmarks.deliveries import LIBRARIES_BY_DATABASE, Library
from benchmarks.outages.poolers import NO_TIMEOUTS, start_pooler
from benchmarks.outages.running_writers import count_ended, list_web_processes
from benchmarks.support import databases
from benchmarks.support.arguments import note
from benchmarks.support.credentials import create_session
from benchmarks.support.findings import Finding
from tests.support.postgres import Cluster

CLIENT_COUNTS = (24, 64)
# Granian ends threads that are idle for 30 seconds, unless it is told otherwise.
QUIET_SECONDS = 40.0
SECRET_KEY = "the-secret-key-of-the-library-of-this-measurement-and-of-no-other"  # noqa: S105
CONNECTIONS_SQL = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'library-web'"
ROWS = b"title,author,year,isbn,genre\n" + b"Emma,Jane Austen,1815,,Novel\n" * 500
# Forms with many choices, and what reads the history.
PAGES = (
    "/admin/auth/group/add/",
    "/admin/auth/user/1/change/",
    "/admin/books/book/",
    "/admin/books/book/{id}/history/",
)


class Case(NamedTuple):
    """A database, and how many processes serve it with how many threads each."""

    database: str
    processes: int
    threads: int
    has_pooler: bool = False

    def __str__(self) -> str:
        pooler = " behind PgBouncer" if self.has_pooler else ""
        return f"{self.database}{pooler}, {self.processes} × {self.threads} threads"


CASES = (
    Case("SQLite", 2, 8),
    Case("PostgreSQL", 2, 8),
    Case("PostgreSQL", 4, 1, has_pooler=True),
    Case("PostgreSQL", 2, 8, has_pooler=True),
)


class Guest:
    """A client of one burst. It reverts a book of its own, opens pages, and remembers each wrong answer."""

    def __init__(self, client: httpx.Client, pk: int) -> None:
        self.client, self.pk = client, pk
        self.errors: list[str] = []

    def visit(self) -> None:
        book = self.request("GET", f"/api/v2/books/{self.pk}")
        self.request("PATCH", f"/api/v2/books/{self.pk}", json={"title": f"Burst {self.pk}", "year": self.pk})
        self.open_page()
        reverted = self.request("POST", f"/api/v2/books/{self.pk}/revert", json={"version": book.get("version")})
        for name in ("title", "author", "year", "isbn"):
            if reverted and book and reverted[name] != book[name]:
                self.errors.append(f"book {self.pk} has the {name} {reverted[name]!r} instead of {book[name]!r}")
        self.open_page()
        if self.pk % 8 == 0:
            self.upload()

    def open_page(self) -> None:
        for path in PAGES:
            self.request("GET", path.format(id=self.pk))

    def upload(self) -> None:
        data = {"csrfmiddlewaretoken": self.client.cookies.get("csrftoken", "")}
        self.request("POST", "/admin/books/book/import/", data=data, files={"file": ("books.csv", ROWS)})

    def request(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Returns the JSON of an answer, and nothing for a page, a wrong answer and a 503 with Retry-After."""
        try:
            answer = self.client.request(method, path, **options)
        except httpx.TransportError as error:
            self.errors.append(f"{method} {path}: {error!r}")
            return {}
        if answer.status_code == (302 if "files" in options else 200):
            return answer.json() if answer.headers["Content-Type"] == "application/json" else {}
        if answer.status_code != 503 or "Retry-After" not in answer.headers:
            self.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return {}


def check_bursts(options: Namespace) -> Iterator[Finding]:
    for case in CASES:
        with LIBRARIES_BY_DATABASE[case.database]() as library:
            databases.seed_library(library.url, max(CLIENT_COUNTS))
            yield send_bursts(library, case, options.bursts)


def send_bursts(library: Library, case: Case, count: int) -> Finding:
    session = create_session(library.url, SECRET_KEY)
    settings = {"WEB_CONCURRENCY": str(case.processes), "WEB_THREADS": str(case.threads), "SECRET_KEY": SECRET_KEY}
    errors, connections = [], []
    with ExitStack() as stack:
        url = library.url
        if case.has_pooler and library.cluster:
            pooler = stack.enter_context(start_pooler(library.cluster))
            url, settings = Cluster(pooler.folder).url(), settings | NO_TIMEOUTS
        server = stack.enter_context(competitors.start_library(url, LIBRARY_ACCESS="open", **settings))
        processes = list_web_processes(server)
        for clients in islice(cycle(CLIENT_COUNTS), count):
            errors += send_burst(f"http://127.0.0.1:{server.port}", session, clients)
            time.sleep(QUIET_SECONDS)
            connections.append(library.execute_sql(CONNECTIONS_SQL)[0][0] if library.cluster else 0)
        ended = count_ended(server, processes)
    for error in errors[:5]:
        note(f"  {error}")
    too_many = max(0, max(connections) - case.processes * case.threads)
    result = f"{ended} processes ended; connections after each: {', '.join(map(str, connections))}; {len(errors)} wrong"
    return Finding(f"{count} bursts, {case}", result, ended + too_many + len(errors))


def send_burst(url: str, session: dict[str, str], clients: int) -> list[str]:
    """Returns the wrong answers."""
    with ExitStack() as stack, ThreadPoolExecutor(clients) as pool:
        open_client = partial(httpx.Client, base_url=url, cookies=session, timeout=120)
        guests = [Guest(stack.enter_context(open_client()), pk + 1) for pk in range(clients)]
        for visit in [pool.submit(guest.visit) for guest in guests]:
            visit.result()
    return [error for guest in guests for error in guest.errors]
