"""What clients meet while PostgreSQL is away, and when it is back."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import httpx
import pytest
from django.db import connection

from tests.support.books import new_book
from tests.support.postgres import Cluster, binary, throwaway_cluster, unprivileged
from tests.support.serving import Service, seed, serving

pytestmark = pytest.mark.skipif(
    connection.vendor == "sqlite", reason="PostgreSQL goes away once, in the suite's run on PostgreSQL"
)

BOOKS = "/api/v2/books"
WORDS = "The library is out of reach, try again later"
# WEB_CONCURRENCY × WEB_THREADS, each with a connection to the database.
CONNECTIONS = 16
KEY = {"Idempotency-Key": "once"}
BULK = {"operations": [{"op": "create", "book": new_book()}]}
REQUESTS: list[tuple[str, str, Any, dict[str, str]]] = [
    ("GET", "/books", None, {}),
    ("GET", "/books/1", None, {}),
    ("POST", "/books", new_book(), {}),
    ("PUT", "/books/1", new_book(), {}),
    ("PUT", "/books/1", {"year": "1984"}, {}),
    ("DELETE", "/books/1", None, {}),
]
REQUESTS_OF_VERSION_2: list[tuple[str, str, Any, dict[str, str]]] = [
    *REQUESTS,
    ("GET", "/books?count=true&q=emma", None, {}),
    ("GET", "/books/1", None, {"If-None-Match": '"v2-1-1"'}),
    ("PATCH", "/books/1", {"year": 2000}, {"If-Match": '"v2-1-1"'}),
    ("POST", "/books", new_book(), KEY),
    ("POST", "/books/bulk", BULK, {}),
    ("POST", "/books/bulk?dry_run=true", BULK, {}),
    ("POST", "/books/bulk", BULK, KEY),
]


class Outage(NamedTuple):
    """A served library whose database can go away."""

    service: Service
    cluster: Cluster

    @contextmanager
    def lasting(self) -> Iterator[None]:
        """Ends the database as a machine that dies does, and starts it again."""
        self.tell_cluster("-m", "immediate", "stop")
        try:
            yield
        finally:
            self.tell_cluster("-l", str(self.cluster.sockets / "log"), "start")

    def tell_cluster(self, *command: str) -> None:
        unprivileged(binary("pg_ctl"), "-D", str(self.cluster.sockets / "data"), "-w", *command)


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    with throwaway_cluster() as cluster:
        seed(cluster.url())
        with serving(tmp_path_factory.mktemp("outage"), cluster.url()) as service:
            yield Outage(service, cluster)


def answers(
    client: httpx.Client, root: str, requests: list[tuple[str, str, Any, dict[str, str]]]
) -> list[httpx.Response]:
    return [
        client.request(method, root + address, json=body, headers=headers)
        for method, address, body, headers in requests
    ]


def patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    """The first answer but 503, which each connection that was kept may give once more."""
    return next(answer for answer in (send() for _ in range(CONNECTIONS + 1)) if answer.status_code != 503)


def test_while_the_database_is_away_every_request_is_told_so(outage: Outage) -> None:
    with outage.service.client() as client:
        read = partial(client.get, f"{BOOKS}/1")
        before = patiently(read)
        with outage.lasting():
            in_version_1 = answers(client, "/api", REQUESTS)
            in_version_2 = answers(client, "/api/v2", REQUESTS_OF_VERSION_2)
            root = client.get("/")
        after = patiently(read)
    assert [(answer.status_code, answer.json()) for answer in in_version_1] == [(503, {"detail": WORDS})] * 6
    assert [(answer.status_code, answer.json()) for answer in in_version_2] == [
        (503, {"error": {"code": "UNAVAILABLE", "message": WORDS, "requestId": answer.headers["X-Request-ID"]}})
        for answer in in_version_2
    ]
    assert all(answer.headers["X-Request-ID"] for answer in in_version_1)
    assert root.status_code == 200
    assert (after.status_code, after.json()) == (200, before.json())


def test_the_service_comes_back_by_itself(outage: Outage) -> None:
    with outage.service.client() as client:
        with outage.lasting():
            client.get(BOOKS)
        statuses = Counter(client.get(f"{BOOKS}/1").status_code for _ in range(4 * CONNECTIONS))
    assert statuses.keys() <= {200, 503}
    assert statuses[503] <= CONNECTIONS


def test_what_was_answered_503_can_be_sent_again(outage: Outage) -> None:
    with outage.service.client() as client:
        post = partial(client.post, BOOKS, json=new_book(), headers={"Idempotency-Key": "sent-again"})
        with outage.lasting():
            refused = post()
        first, again = patiently(post), patiently(post)
    assert [refused.status_code, first.status_code, again.status_code] == [503, 201, 201]
    assert "Idempotent-Replayed" not in first.headers
    assert (again.headers["Idempotent-Replayed"], again.json()) == ("true", first.json())


class Writer:
    """A client that adds books all the while, and what it was told."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.kept: dict[str, Any] = {}
        self.statuses: list[int] = []
        self.stopped = False

    def __call__(self) -> "Writer":
        with self.service.client() as client:
            while not self.stopped:
                self.add(client)
        return self

    def add(self, client: httpx.Client) -> None:
        answer = client.post(BOOKS, json=new_book())
        self.statuses.append(answer.status_code)
        if answer.status_code == 201:
            self.kept[answer.headers["Location"]] = answer.json()


def test_nothing_that_was_acknowledged_is_lost(outage: Outage) -> None:
    writers = [Writer(outage.service) for _ in range(8)]
    with ThreadPoolExecutor(len(writers)) as pool, outage.service.client() as client:
        working = [pool.submit(writer) for writer in writers]
        try:
            for _ in range(2):
                patiently(partial(client.post, BOOKS, json=new_book()))
                with outage.lasting():
                    client.get(BOOKS)
            patiently(partial(client.post, BOOKS, json=new_book()))
        finally:
            for writer in writers:
                writer.stopped = True
        told = [done.result() for done in working]
        kept = {address: book for writer in told for address, book in writer.kept.items()}
        read = {address: patiently(partial(client.get, address)).json() for address in kept}
    assert {status for writer in told for status in writer.statuses} == {201, 503}
    assert read == kept


def test_columns_change_their_type_while_the_library_serves(outage: Outage) -> None:
    read_and_write: list[tuple[str, str, Any, dict[str, str]]] = [
        ("GET", "/books/3", None, {"If-None-Match": '"another"'}),
        ("GET", "/books?limit=1", None, {}),
        ("PATCH", "/books/3", {"year": 1999}, {}),
    ]
    with outage.service.client() as client:
        before = [answers(client, "/api/v2", read_and_write) for _ in range(CONNECTIONS)]
        for kind in ("text", "varchar(200)"):
            outage.service.sql(f"ALTER TABLE books_book ALTER COLUMN genre TYPE {kind}")
            after = [answers(client, "/api/v2", read_and_write) for _ in range(CONNECTIONS)]
            assert {answer.status_code for all in after for answer in all} == {200}
            assert after[-1][-1].json() == before[-1][-1].json()


def test_the_log_tells_what_clients_are_not_told(outage: Outage) -> None:
    log = outage.service.log.read_text()
    assert "The database did not answer." in log
    assert "Internal Server Error" not in log
