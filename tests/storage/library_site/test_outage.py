"""What clients receive while PostgreSQL is stopped, and after it has started again."""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.postgres import Cluster, find_binary, run_unprivileged, start_cluster
from tests.support.server import Service, build_database_url, create_seeded_template, run_in_shell, serve_library
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="Stops a PostgreSQL server: runs only on PostgreSQL"
)

BOOKS, EVENTS = "/api/v2/books", "/api/v2/events"
MESSAGE = "The library is out of reach, try again later"
# WEB_CONCURRENCY × WEB_THREADS, each with a connection to the database.
CONNECTIONS = 16
# Prints an API key.
CREATE_KEY = """
from django.contrib.auth.models import User
from tests.support.oauth_flows import create_key_header
print(create_key_header(User.objects.create_superuser("reader"), "webhooks")["X-API-Key"])
"""
KEY = {"Idempotency-Key": "once"}
BULK = {"operations": [{"op": "create", "book": build_book()}]}
REQUESTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("GET", "/api/books", None, {}),
    ("PUT", "/api/books/1", build_book(), {}),
    ("DELETE", "/api/books/1", None, {}),
    ("GET", "/api/v2/books?count=true&q=emma", None, {}),
    ("PATCH", "/api/v2/books/1", {"year": 2000}, {"If-Match": '"v2-1-1"'}),
    ("POST", "/api/v2/books/bulk", BULK, KEY),
]


class Outage(NamedTuple):
    """A served library whose database can be stopped."""

    service: Service
    cluster: Cluster

    @contextmanager
    def stop_database(self) -> Iterator[None]:
        """Stops the database immediately, as a crash does, and starts it again after the block."""
        self.run_pg_ctl("-m", "immediate", "stop")
        try:
            yield
        finally:
            self.run_pg_ctl("-l", str(self.cluster.sockets / "log"), "start")

    def run_pg_ctl(self, *command: str) -> None:
        run_unprivileged(find_binary("pg_ctl"), "-D", str(self.cluster.sockets / "data"), "-w", *command)


@pytest.fixture(scope="module")
def outage(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    # The server is killed, but the machine goes on: nothing has to be on the disk.
    with start_cluster(fsync="off", full_page_writes="off") as cluster:
        dump = subprocess.run(
            ["pg_dump", build_database_url(create_seeded_template())], check=True, capture_output=True
        )
        subprocess.run(["psql", "-qX", cluster.url()], input=dump.stdout, check=True, stdout=subprocess.DEVNULL)
        with serve_library(tmp_path_factory.mktemp("outage"), cluster.url()) as service:
            yield Outage(service, cluster)


def send_requests(client: httpx.Client, requests: list[tuple[str, str, Any, dict[str, str]]]) -> list[httpx.Response]:
    return [client.request(method, path, json=body, headers=headers) for method, path, body, headers in requests]


def send_until_available(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Returns the first response that is not 503: after an outage, each open connection may fail once more."""
    return next(response for response in (send() for _ in range(CONNECTIONS + 1)) if response.status_code != 503)


def test_while_the_database_is_away_every_request_is_answered_503(outage: Outage) -> None:
    """Then the service comes back by itself, and what was refused can be sent again."""
    with outage.service.open_client() as client:
        read = partial(client.get, f"{BOOKS}/1")
        post = partial(client.post, BOOKS, json=build_book(), headers=KEY)
        before = send_until_available(read)
        with outage.stop_database():
            responses = send_requests(client, REQUESTS)
            root = client.get("/")
        statuses = Counter(read().status_code for _ in range(2 * CONNECTIONS))
        after, first, second = read(), post(), post()
    for (_, path, *_), response in zip(REQUESTS, responses, strict=True):
        error = {"code": "UNAVAILABLE", "message": MESSAGE, "requestId": response.headers["X-Request-ID"]}
        expected = {"error": error} if path.startswith(BOOKS) else {"detail": MESSAGE}
        assert (response.status_code, response.json()) == (503, expected), path
    assert root.status_code == 200
    assert statuses.keys() <= {200, 503}
    assert statuses[503] <= CONNECTIONS
    assert (after.status_code, after.json()) == (200, before.json())
    assert (first.status_code, second.status_code) == (201, 201)
    assert "Idempotent-Replayed" not in first.headers
    assert (second.headers["Idempotent-Replayed"], second.json()) == ("true", first.json())
    log = outage.service.log.read_text()
    assert "The database did not answer: " in log
    assert "Internal Server Error" not in log


class Writer:
    """A client that adds books until it is stopped, with the books and statuses that it received."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.books: dict[str, Any] = {}
        self.statuses: list[int] = []
        self.is_stopped = False

    def __call__(self) -> "Writer":
        with self.service.open_client() as client:
            while not self.is_stopped:
                self.add(client)
        return self

    def add(self, client: httpx.Client) -> None:
        response = client.post(BOOKS, json=build_book())
        self.statuses.append(response.status_code)
        if response.status_code == 201:
            self.books[response.headers["Location"]] = response.json()


def test_nothing_that_was_acknowledged_is_lost(outage: Outage) -> None:
    writers = [Writer(outage.service) for _ in range(4)]
    with ThreadPoolExecutor(len(writers)) as pool, outage.service.open_client() as client:
        futures = [pool.submit(writer) for writer in writers]
        try:
            wait_until(lambda: all(writer.books for writer in writers))
            with outage.stop_database():
                wait_until(lambda: all(503 in writer.statuses for writer in writers))
            send_until_available(partial(client.post, BOOKS, json=build_book()))
        finally:
            for writer in writers:
                writer.is_stopped = True
        writers = [future.result() for future in futures]
        created = {address: book for writer in writers for address, book in writer.books.items()}
        stored = {address: send_until_available(partial(client.get, address)).json() for address in created}
    assert {status for writer in writers for status in writer.statuses} == {201, 503}
    assert stored == created


def test_readers_of_events_that_were_lost_begin_anew(outage: Outage) -> None:
    """A base backup gives the numbers of transactions, in the timeline, of the database that went on."""
    sockets = outage.cluster.sockets
    key = {"X-API-Key": run_in_shell(outage.service.database_url, CREATE_KEY).strip()}
    with outage.service.open_client() as client:

        def add_books(count: int) -> None:
            for _ in range(count):
                send_until_available(partial(client.post, BOOKS, json=build_book())).raise_for_status()

        def read(**query: str) -> httpx.Response:
            return send_until_available(partial(client.get, EVENTS, params=query, headers=key))

        add_books(1)
        kept = read().json()["cursor"]
        backup = [find_binary("pg_basebackup"), "-h", str(sockets), "-U", "postgres", "-c", "fast", "--no-sync"]
        run_unprivileged(*backup, "-D", str(sockets / "backup"))
        add_books(5)
        lost = read(after=kept).json()["cursor"]
        with outage.stop_database():
            (sockets / "data").rename(sockets / "lost")
            (sockets / "backup").rename(sockets / "data")
        add_books(2)
        assert read(after=lost).status_code == 410
        assert len(read(after=kept).json()["results"]) == 2
        add_books(6)
        assert read(after=lost).status_code == 410
