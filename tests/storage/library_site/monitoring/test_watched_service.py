"""A served library while it is watched: all its threads hang, it is stopped, and it is under load."""

import json
import re
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.logs import kill_worker
from tests.support.metrics import TOKEN, scrape
from tests.support.server import Service, reserve_port, serve_library
from tests.support.waiting import wait_until

THREADS = 2
PATIENT = {"DATABASE_LOCK_TIMEOUT": "0", "DATABASE_STATEMENT_TIMEOUT": "0"}
WAITING = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'library-web' AND wait_event_type = 'Lock'"

postgresql_alone = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables")


@pytest.fixture(scope="module")
def health_port() -> Iterator[int]:
    with reserve_port() as port:
        yield port


@pytest.fixture(scope="module")
def watched_service(tmp_path_factory: pytest.TempPathFactory, health_port: int) -> Iterator[Service]:
    """A library with a few threads, which wait for locks without end."""
    variables = {"HEALTH_PORT": str(health_port), "METRICS_TOKEN": TOKEN, "WEB_THREADS": str(THREADS)}
    variables |= {"LOG_FORMAT": "json", "LOG_LEVEL": "info"}
    with serve_library(tmp_path_factory.mktemp("watched"), **variables, **PATIENT) as service:
        yield service


def test_the_metrics_equal_the_access_log(watched_service: Service, health_port: int) -> None:
    """Those of both ports, after load on the compiled path and on Django's, and after the death of a worker."""

    def send(number: int) -> None:
        client.get(f"/api/v2/books/{number % 5}")
        client.post("/api/v2/books", json=build_book())
        client.get(("/", "/docs", "/static/admin/css/base.css", "/api/books?limit=x")[number % 4])

    def send_all(count: int) -> None:
        """Sends three requests for each number and waits for their lines: a response is logged after it was sent."""
        expected = count_logged(watched_service).total() + 3 * count
        list(pool.map(send, range(count)))
        wait_until(lambda: count_logged(watched_service).total() == expected)

    with watched_service.open_client() as client, ThreadPoolExecutor(4) as pool:
        wait_until(lambda: count_logged(watched_service).total() == 1)
        send_all(40)
        kill_worker(watched_service.process.pid)
        send_all(8)
        counts = [scrape(client.get), scrape(partial(get_from_port, health_port))]
    logged = count_logged(watched_service)
    for samples in counts:
        counted: Counter[tuple[str, str]] = Counter()
        for (name, *labels), value in samples.items():
            if name == "request_duration_seconds_count":
                method, _, status, _ = labels
                counted[method, status] += int(value)
        assert counted == logged


def count_logged(service: Service) -> Counter[tuple[str, str]]:
    """Returns the number of lines in the access log by method and status. It begins with the request of the start."""
    *whole_lines, _ = service.log.read_text().split("\n")
    lines = [json.loads(line) for line in whole_lines if '"library_site.access"' in line]
    return Counter((line["method"], str(line["status"])) for line in lines)


@postgresql_alone
def test_probes_answer_while_all_threads_hang(watched_service: Service, health_port: int) -> None:
    with (
        ThreadPoolExecutor(THREADS) as pool,
        watched_service.open_client() as client,
    ):
        with hold_books(watched_service):
            hanging = [pool.submit(client.get, "/api/v2/books/1") for _ in range(THREADS)]
            wait_for_waiting(watched_service, THREADS)
            samples = scrape(partial(get_from_port, health_port))
            alive, ready = (get_from_port(health_port, address, timeout=2) for address in ("/livez", "/readyz"))
            with pytest.raises(httpx.ReadTimeout):
                httpx.get(f"{watched_service.url}/livez", timeout=0.2)
        assert [future.result().status_code for future in hanging] == [200] * THREADS
    assert [alive.status_code, ready.status_code] == [200, 200]
    assert samples["threads_busy",] == samples["threads",] == THREADS


def get_from_port(port: int, address: str, **options: Any) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{address}", **options)


@contextmanager
def hold_books(service: Service) -> Iterator[None]:
    """Makes requests for books wait, on PostgreSQL."""
    with psycopg.connect(service.database_url) as blocker:
        blocker.execute("LOCK TABLE books_book")
        yield
        blocker.rollback()


def wait_for_waiting(service: Service, count: int) -> None:
    wait_until(lambda: len(service.fetch_all(WAITING)) == count)


@postgresql_alone
def test_a_stop_answers_what_waits_for_the_database(tmp_path: Path) -> None:
    with (
        serve_library(tmp_path, STOP_TIMEOUT="2", **PATIENT) as service,
        ThreadPoolExecutor(1) as pool,
        service.open_client() as client,
        hold_books(service),
    ):
        waiting = pool.submit(client.get, "/api/v2/books/1")
        wait_for_waiting(service, 1)
        service.process.send_signal(signal.SIGTERM)
        response = waiting.result()
        assert service.process.wait(timeout=9) == 0
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "Cut off" not in service.log.read_text()


def test_a_stop_logs_the_requests_that_it_cuts(tmp_path: Path) -> None:
    """Such as one whose body never arrives."""
    head = b"POST /api/v2/books HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nX-Request-ID: the-cut-one\r\n\r\n"
    with (
        serve_library(tmp_path, STOP_TIMEOUT="2", METRICS_TOKEN=TOKEN, LOG_LEVEL="info") as service,
        socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0)) as stuck,
        service.open_client() as client,
    ):
        stuck.sendall(head)
        wait_until(lambda: scrape(client.get)["threads_busy",] == 1)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(timeout=9) == 0
    log = service.log.read_text()
    assert "library_site.process: The process serves requests, with 8 threads." in log
    assert "library_site.process: The process stops: 1 requests are under way." in log
    assert re.findall(r"ERROR the-cut-one library_site.process: Cut off after \d\.\d s: (.*)", log) == [
        "POST /api/v2/books"
    ]
