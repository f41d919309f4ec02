"""A lock does not stop the library, and its processes have limits and names in PostgreSQL."""

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.server import Service, serve_library
from tests.support.settings import read_settings

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables")

REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/books", {}),
    ("GET", "/books?author=austen", {}),
    ("GET", "/books/1", {}),
    ("POST", "/books", {"json": build_book()}),
    ("PUT", "/books/1", {"json": build_book()}),
    ("DELETE", "/books/1", {}),
]


def list_connections(service: Service, process: str) -> set[int]:
    rows = service.fetch_all("SELECT pid, application_name FROM pg_stat_activity")
    return {pid for pid, name in rows if name == f"library-{process}"}


def test_a_locked_table_does_not_stop_the_library(tmp_path: Path) -> None:
    def send(request: tuple[str, str, dict[str, Any]]) -> httpx.Response:
        method, address, options = request
        return client.request(method, f"/api/v2{address}", **options)

    with (
        serve_library(tmp_path, DATABASE_LOCK_TIMEOUT="1", DATABASE_STATEMENT_TIMEOUT="0") as service,
        service.open_client() as client,
        psycopg.connect(service.database_url) as blocker,
    ):
        blocker.execute("LOCK TABLE books_book")
        with ThreadPoolExecutor(len(REQUESTS)) as pool:
            responses = list(pool.map(send, REQUESTS))
        pages = [client.get("/"), client.get("/docs"), client.get("/static/admin/css/base.css")]
        connections = list_connections(service, "web")
        blocker.rollback()
        recovered = client.get("/api/v2/books/1")
        assert list_connections(service, "web") == connections
    busy = "The library is busy, try again later"
    assert [
        (response.status_code, response.headers["Retry-After"], response.json()["error"]["message"])
        for response in responses
    ] == [(503, "1", busy)] * len(REQUESTS)
    assert [page.status_code for page in [*pages, recovered]] == [200] * 4


@pytest.mark.usefixtures("db")
def test_only_requests_have_a_limit_and_each_process_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for process, limits in (("web", ["2s", "5s"]), ("worker", ["0", "0"]), ("command", ["0", "0"])):
        settings = read_settings({"DATABASE_URL": os.environ["DATABASE_URL"], "LIBRARY_PROCESS": process})
        monkeypatch.setitem(connection.settings_dict, "OPTIONS", settings["DATABASES"]["default"]["OPTIONS"])
        shown = []
        with closing(connection.copy()) as database, database.cursor() as cursor:
            limit_names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout")
            for name in (*limit_names, "application_name"):
                cursor.execute(f"SHOW {name}")
                shown += cursor.fetchone()
        assert shown == [*limits, "1min", f"library-{process}"], process
