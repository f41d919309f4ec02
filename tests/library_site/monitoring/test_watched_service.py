"""A served library while it is watched: all its threads hang, it is stopped, and it is under load."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.concurrency import wait_until
from tests.support.server import Service, reserve_port, serve_library

THREADS = 2


@pytest.fixture(scope="module")
def health_port() -> Iterator[int]:
    with reserve_port() as port:
        yield port


@pytest.fixture(scope="module")
def watched_service(tmp_path_factory: pytest.TempPathFactory, health_port: int) -> Iterator[Service]:
    """A library with a few threads, which wait for locks without end."""
    variables = {"HEALTH_PORT": str(health_port), "WEB_THREADS": str(THREADS), "DATABASE_LOCK_TIMEOUT": "0"}
    with serve_library(tmp_path_factory.mktemp("watched"), **variables, DATABASE_STATEMENT_TIMEOUT="0") as service:
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
        alive, ready = (httpx.get(f"http://127.0.0.1:{health_port}/{name}", timeout=2) for name in ("livez", "readyz"))
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{watched_service.url}/livez", timeout=0.2)
        blocker.rollback()
        assert [future.result().status_code for future in hanging] == [200] * THREADS
    assert [alive.status_code, ready.status_code] == [200, 200]
