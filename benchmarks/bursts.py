"""Bursts of clients with quiet seconds between them: no process ends, and connections do not add up."""

import os
import shutil
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks import competitors
from benchmarks.competitors import Server
from benchmarks.support import databases, load
from benchmarks.support.arguments import note
from benchmarks.support.credentials import create_session
from benchmarks.support.libraries import LIBRARIES_BY_DATABASE, Library
from benchmarks.support.writers import Finding
from tests.support.postgres import SHORT_FOLDER, Cluster

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
# PgBouncer refuses such parameters (docs/operations/large.md).
NO_TIMEOUTS = dict.fromkeys(("DATABASE_LOCK_TIMEOUT", "DATABASE_STATEMENT_TIMEOUT", "DATABASE_IDLE_TIMEOUT"), "0")
POOLER_CONFIGURATION = """
[databases]
* = host={server} user=postgres
[pgbouncer]
listen_port = 5432
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 6
"""


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
        """Returns the JSON of a response, and nothing for a page, a wrong answer and a 503 with Retry-After."""
        try:
            response = self.client.request(method, path, **options)
        except httpx.TransportError as error:
            self.errors.append(f"{method} {path}: {error!r}")
            return {}
        if response.status_code == (302 if "files" in options else 200):
            return response.json() if response.headers["Content-Type"] == "application/json" else {}
        if response.status_code != 503 or "Retry-After" not in response.headers:
            self.errors.append(f"{method} {path}: {response.status_code} {response.text[:200]}")
        return {}


def check_bursts(options: Namespace) -> Iterator[Finding]:
    for case in CASES:
        if case.has_pooler and not shutil.which("pgbouncer"):
            yield Finding(str(case), "NOT TRIED: apt-get install pgbouncer", 1)
            continue
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
            url, settings = stack.enter_context(start_pooler(library.cluster)).url(), settings | NO_TIMEOUTS
        server = stack.enter_context(competitors.start_library(url, LIBRARY_ACCESS="open", **settings))
        processes = list_web_processes(server)
        for clients in islice(cycle(CLIENT_COUNTS), count):
            errors += send_burst(f"http://127.0.0.1:{server.port}", session, clients)
            time.sleep(QUIET_SECONDS)
            connections.append(library.execute_sql(CONNECTIONS_SQL)[0][0] if library.cluster else 0)
        ended = len(processes - list_web_processes(server))
    for error in errors[:5]:
        note(f"  {error}")
    too_many = max(0, max(connections) - case.processes * case.threads)
    result = f"{ended} processes ended; connections after each: {', '.join(map(str, connections))}; {len(errors)} wrong"
    return Finding(f"{count} bursts, {case}", result, ended + too_many + len(errors))


def list_web_processes(server: Server) -> set[int]:
    return {process.pid for process in load.iter_processes() if process.parent == server.pid}


@contextmanager
def start_pooler(cluster: Cluster) -> Iterator[Cluster]:
    """Yields the sockets of a PgBouncer before this server."""
    folder = Path(tempfile.mkdtemp(prefix="library-pooler-", dir=SHORT_FOLDER))
    configuration = POOLER_CONFIGURATION.format(server=cluster.sockets, folder=folder)
    (folder / "pgbouncer.ini").write_text(configuration)
    is_root = os.geteuid() == 0
    if is_root:
        shutil.chown(folder, "nobody")
    command = ["pgbouncer", "-q", str(folder / "pgbouncer.ini")]
    with subprocess.Popen(command, user="nobody" if is_root else None, stderr=subprocess.DEVNULL) as process:
        try:
            yield Cluster(folder)
        finally:
            process.kill()
    shutil.rmtree(folder)


def send_burst(url: str, session: dict[str, str], clients: int) -> list[str]:
    """Returns the wrong answers."""
    with ExitStack() as stack, ThreadPoolExecutor(clients) as pool:
        open_client = partial(httpx.Client, base_url=url, cookies=session, timeout=120)
        guests = [Guest(stack.enter_context(open_client()), pk + 1) for pk in range(clients)]
        for visit in [pool.submit(guest.visit) for guest in guests]:
            visit.result()
    return [error for guest in guests for error in guest.errors]
