"""A served library while it is watched: all its threads hang, it is stopped, and it is under load."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.concurrency import wait_until
from tests.support.logs import kill_worker
from tests.support.metrics import TOKEN, scrape
from tests.support.server import Service, reserve_port, serve_library

THREADS = 2


@pytest.fixture(scope="module")
def health_port() -> Iterator[int]:
    with reserve_port() as port:
        yield port


@pytest.fixture(scope="module")
def watched_service(tmp_path_factory: pytest.TempPathFactory, health_port: int) -> Iterator[Service]:
    """A library with a few threads, which wait for locks without end."""
    variables = {"HEALTH_PORT": str(health_port), "METRICS_TOKEN": TOKEN, "WEB_THREADS": str(THREADS)}
    variables |= {"DATABASE_LOCK_TIMEOUT": "0", "DATABASE_STATEMENT_TIMEOUT": "0", "LOG_FORMAT": "json"}
    with serve_library(tmp_path_factory.mktemp("watched"), **variables, LOG_LEVEL="info") as service:
        yield service


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables")
def test_probes_answer_while_all_threads_hang(watched_service: Service, health_port: int) -> None:
    waiting = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'library-web' AND wait_event_type = 'Lock'"
    with (
        ThreadPoolExecutor(THREADS) as pool,
        watched_service.open_client() as client,
        psycopg.connect(watched_service.database_url) as blocker,
    ):
        blocker.execute("LOCK TABLE books_book")
        hanging = [pool.submit(client.get, "/api/v2/books/1") for _ in range(THREADS)]
        wait_until(lambda: len(watched_service.fetch_all(waiting)) == THREADS)
        samples = scrape(partial(get_from_port, health_port))
        alive, ready = (httpx.get(f"http://127.0.0.1:{health_port}/{name}", timeout=2) for name in ("livez", "readyz"))
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{watched_service.url}/livez", timeout=0.2)
        blocker.rollback()
        assert [future.result().status_code for future in hanging] == [200] * THREADS
    assert [alive.status_code, ready.status_code] == [200, 200]
    assert samples["threads_busy",] == samples["threads",] == THREADS


def get_from_port(port: int, address: str, **options: Any) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{address}", timeout=10, **options)


def test_the_metrics_equal_the_access_log(watched_service: Service, health_port: int) -> None:
    """Those of both ports, after load on the fast path and on Django's, and after the death of a worker."""

    def send(number: int) -> None:
        client.get(f"/api/v2/books/{number % 5}")
        client.post("/api/v2/books", json=build_book())
        client.get(("/", "/docs", "/static/admin/css/base.css", "/api/books?limit=x")[number % 4])

    with watched_service.open_client() as client, ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(40)))
        kill_worker(watched_service.process.pid)
        list(pool.map(send, range(8)))
        counts = [scrape(client.get), scrape(partial(get_from_port, health_port))]
    lines = [line for line in watched_service.log.read_text().splitlines() if '"library_site.access"' in line]
    logged = Counter((line["method"], str(line["status"])) for line in map(json.loads, lines))
    assert logged.total() > 3 * 48
    for samples in counts:
        counted: Counter[tuple[str, str]] = Counter()
        for (name, *labels), value in samples.items():
            if name == "request_duration_seconds_count":
                method, _, status, _ = labels
                counted[method, status] += int(value)
        assert counted == logged
