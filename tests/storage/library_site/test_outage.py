"""What clients receive while PostgreSQL is stopped, and after it has started again."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.postgres import Cluster, find_binary, run_unprivileged, start_cluster
from tests.support.server import build_database_url, create_seeded_template, serve_library

pytestmark = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="Stops a PostgreSQL server: runs only on PostgreSQL"
)

BOOKS = "/api/v2/books"
MESSAGE = "The library is out of reach, try again later"
# WEB_CONCURRENCY × WEB_THREADS, each with a connection to the database.
CONNECTIONS = 16
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


@pytest.fixture
def cluster(postgresql: str) -> Iterator[Cluster]:
    """A server with a seeded database, which can be stopped."""
    # The server is killed, but the machine goes on: nothing has to be on the disk.
    with start_cluster(fsync="off", full_page_writes="off") as cluster:
        dump = subprocess.run(
            ["pg_dump", build_database_url(create_seeded_template())], check=True, capture_output=True
        )
        subprocess.run(["psql", "-qX", cluster.url()], input=dump.stdout, check=True, stdout=subprocess.DEVNULL)
        yield cluster


@contextmanager
def stop_database(cluster: Cluster) -> Iterator[None]:
    """Stops the database immediately, as a crash does, and starts it again after the block."""
    pg_ctl = [find_binary("pg_ctl"), "-D", str(cluster.sockets / "data"), "-w"]
    run_unprivileged(*pg_ctl, "-m", "immediate", "stop")
    try:
        yield
    finally:
        run_unprivileged(*pg_ctl, "-l", str(cluster.sockets / "log"), "start")


def test_while_the_database_is_away_every_request_is_answered_503(cluster: Cluster, tmp_path: Path) -> None:
    """Then the service comes back by itself, and what was refused can be sent again."""
    with serve_library(tmp_path, cluster.url()) as service, service.open_client() as client:
        read = partial(client.get, f"{BOOKS}/1")
        post = partial(client.post, BOOKS, json=build_book(), headers=KEY)
        before = read()
        with stop_database(cluster):
            responses = [client.request(method, path, json=body, headers=key) for method, path, body, key in REQUESTS]
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
    log = service.log.read_text()
    assert "The database did not answer: " in log
    assert "Internal Server Error" not in log
