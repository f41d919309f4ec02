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
VARIABLES = {"WEB_THREADS": str(THREADS), "STOP_TIMEOUT": "2", "LOG_FORMAT": "json", "LOG_LEVEL": "info"}
# Its requests wait for locks without end.
VARIABLES |= {"METRICS_TOKEN": TOKEN, "DATABASE_LOCK_TIMEOUT": "0", "DATABASE_STATEMENT_TIMEOUT": "0"}
WAITING = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'library-web' AND wait_event_type = 'Lock'"


@pytest.fixture
def health_port() -> Iterator[int]:
    with reserve_port() as port:
        yield port


@pytest.fixture
def watched_service(tmp_path: Path, health_port: int) -> Iterator[Service]:
    with serve_library(tmp_path, HEALTH_PORT=str(health_port), **VARIABLES) as service:
        yield service


@pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite shows it.")
def test_the_metrics_equal_the_access_log_which_names_what_a_stop_cuts(
    watched_service: Service, health_port: int
) -> None:
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
        send_all(12)
        kill_worker(watched_service.process.pid)
        send_all(4)
        counts = [scrape(client.get), scrape(partial(get_from_port, health_port))]
    logged = count_logged(watched_service)
    for samples in counts:
        counted: Counter[tuple[str, str]] = Counter()
        for (name, *labels), value in samples.items():
            if name == "request_duration_seconds_count":
                method, _, status, _ = labels
                counted[method, status] += int(value)
        assert counted == logged
    stop_while_a_body_does_not_arrive(watched_service, health_port)
    lines = [line for line in read_log(watched_service) if line["logger"] == "library_site.process"]
    assert lines[0]["message"] == "The process serves requests, with 2 threads."
    assert lines[-2]["message"] == "The process stops: 1 requests are under way."
    assert (lines[-1]["level"], lines[-1]["request_id"]) == ("ERROR", "the-cut-one")
    assert re.fullmatch(r"Cut off after \d\.\d s: POST /api/v2/books", lines[-1]["message"])


def stop_while_a_body_does_not_arrive(service: Service, health_port: int) -> None:
    head = b"POST /api/v2/books HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nX-Request-ID: the-cut-one\r\n\r\n"
    with socket.create_connection(("127.0.0.1", urlsplit(service.url).port or 0)) as stuck:
        stuck.sendall(head)
        wait_until(lambda: scrape(partial(get_from_port, health_port))["threads_busy",] == 1)
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(timeout=9) == 0


def read_log(service: Service) -> list[dict[str, Any]]:
    *whole_lines, _ = service.log.read_text().split("\n")
    return [json.loads(line) for line in whole_lines]


def count_logged(service: Service) -> Counter[tuple[str, str]]:
    """Returns the number of lines in the access log by method and status. It begins with the request of the start."""
    lines = [line for line in read_log(service) if line["logger"] == "library_site.access"]
    return Counter((line["method"], str(line["status"])) for line in lines)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables")
def test_probes_answer_while_all_threads_hang_and_a_stop_answers_what_waits(
    watched_service: Service, health_port: int
) -> None:
    with ThreadPoolExecutor(THREADS) as pool, watched_service.open_client() as client:
        with hold_books(watched_service):
            hanging = [pool.submit(client.get, "/api/v2/books/1") for _ in range(THREADS)]
            wait_for_waiting(watched_service, THREADS)
            samples = scrape(partial(get_from_port, health_port))
            probes = [get_from_port(health_port, address, timeout=2) for address in ("/livez", "/readyz")]
            with pytest.raises(httpx.ReadTimeout):
                httpx.get(f"{watched_service.url}/livez", timeout=0.2)
        assert [future.result().status_code for future in hanging] == [200] * THREADS
        with hold_books(watched_service):
            waiting = pool.submit(client.get, "/api/v2/books/1")
            wait_for_waiting(watched_service, 1)
            watched_service.process.send_signal(signal.SIGTERM)
            stopped = waiting.result()
            assert watched_service.process.wait(timeout=9) == 0
    assert [probe.status_code for probe in probes] == [200, 200]
    assert samples["threads_busy",] == samples["threads",] == THREADS
    assert (stopped.status_code, stopped.headers["Retry-After"]) == (503, "1")
    assert "Cut off" not in watched_service.log.read_text()


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
