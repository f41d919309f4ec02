"""What cannot be answered now is 503 with Retry-After, at every address, and a lock does not stop the library."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import httpx
import psycopg
import pytest
from django.db import DatabaseError, InterfaceError, InternalError, OperationalError, connection
from psycopg import errors

from library_site.db.hangs import DatabaseHangs
from library_site.db.timeouts import DatabaseBusy
from tests.support.books import build_book
from tests.support.failures import break_database
from tests.support.server import Service, serve_library
from tests.support.waiting import PROCESS_TIMEOUT, wait_until

OUT_OF_REACH = "The library is out of reach, try again later"
BUSY = "The library is busy, try again later"
BULK = {"operations": [{"op": "delete", "id": 1}]}
SESSION = {"Cookie": "sessionid=abcdefghijklmnopqrstuvwxyz012345"}
FORM: dict[str, Any] = {"data": {"client_id": "shop", "client_secret": "guess", "token": "x"}}
BOOK_REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/books", {}),
    ("GET", "/books?author=austen", {}),
    ("GET", "/books/1", {}),
    ("POST", "/books", {"json": build_book()}),
    ("PUT", "/books/1", {"json": build_book()}),
    ("PUT", "/books/1", {"content": b"{"}),
    ("DELETE", "/books/1", {}),
]
REQUESTS = [
    *((method, f"/api{address}", options) for method, address, options in BOOK_REQUESTS),
    *((method, f"/api/v2{address}", options) for method, address, options in BOOK_REQUESTS),
    ("GET", "/api/v2/books?count=true", {}),
    ("PATCH", "/api/v2/books/1", {"json": {"year": 2000}}),
    ("POST", "/api/v2/books", {"json": build_book(), "headers": {"Idempotency-Key": "once"}}),
    ("POST", "/api/v2/books/bulk", {"json": BULK}),
    ("POST", "/webhooks/receive/shop", {"json": {}}),
    ("POST", "/oauth/token", FORM),
    ("POST", "/oauth/refresh", FORM),
    ("POST", "/oauth/revoke", FORM),
    ("POST", "/oauth/introspect", FORM),
    ("GET", "/oauth/authorize?client_id=shop", {"headers": SESSION}),
    ("GET", "/accounts/login", {"headers": SESSION}),
    ("GET", "/accounts/apps", {"headers": SESSION}),
    ("GET", "/admin/", {"headers": SESSION}),
    ("GET", "/admin/books/book/", {"headers": SESSION}),
]


def chain(error: DatabaseError, cause: Exception) -> DatabaseError:
    """Returns Django's exception for one of the driver."""
    error.__cause__ = cause
    return error


FAILURES = {
    "no connection": (OperationalError("gone"), OUT_OF_REACH),
    "hangs": (chain(OperationalError(), DatabaseHangs()), OUT_OF_REACH),
    "closed": (InterfaceError("the connection is closed"), OUT_OF_REACH),
    "read-only": (chain(InternalError(), errors.ReadOnlySqlTransaction()), OUT_OF_REACH),
    "idle transaction": (chain(InternalError(), errors.IdleInTransactionSessionTimeout()), OUT_OF_REACH),
    "lock": (chain(OperationalError(), errors.LockNotAvailable()), BUSY),
    "slow": (chain(OperationalError(), errors.QueryCanceled()), BUSY),
    "writers": (DatabaseBusy(), BUSY),
}


@pytest.mark.parametrize(("method", "address", "options"), REQUESTS)
def test_every_503_says_when_to_come_again(
    api: httpx.Client, method: str, address: str, options: dict[str, Any]
) -> None:
    for failure, message in FAILURES.values():
        with break_database(failure):
            response = api.request(method, address, **options)
        assert (response.status_code, response.headers.get("Retry-After")) == (503, "1"), failure
        assert message in response.text


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_documents_name_retry_after(api: httpx.Client, version: str) -> None:
    paths = api.get(f"/openapi/{version}.json").json()["paths"]
    responses = [
        operation["responses"]["503"]
        for address, operations in paths.items()
        for operation in operations.values()
        if address.startswith("/api")
    ]
    assert [response["headers"].keys() for response in responses] == [{"Retry-After"}] * len(responses)
    assert len(responses) >= 5


@pytest.mark.parametrize("failure", ["lock", "slow", "writers"])
@pytest.mark.parametrize("address", ["/api/books/1", "/api/books", "/api/v2/books/1"])
def test_a_read_that_timed_out_is_not_tried_again(
    api: httpx.Client, book: dict[str, Any], address: str, failure: str
) -> None:
    address = address.replace("1", str(book["id"]))
    statements = []

    def fail(execute: Any, sql: str, *arguments: Any) -> NoReturn:
        statements.append(sql)
        raise FAILURES[failure][0]

    with connection.execute_wrapper(fail):
        assert api.get(address).status_code == 503
    assert len(statements) == 1


def test_a_timeout_is_one_line_in_the_log(api: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with break_database(FAILURES["lock"][0]):
        api.get("/api/books")
    assert [record.getMessage() for record in caplog.records if record.name == "library_site.http.errors"] == [
        "The database is busy: LockNotAvailable"
    ]
    assert not any(record.exc_info for record in caplog.records)


postgresql_alone = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no locks on tables")


@pytest.fixture(scope="module", params=["DATABASE_LOCK_TIMEOUT", "DATABASE_STATEMENT_TIMEOUT"])
def impatient_service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A library whose requests wait for one second, by one of the two limits."""
    limits = {"DATABASE_LOCK_TIMEOUT": "0", "DATABASE_STATEMENT_TIMEOUT": "0", request.param: "1"}
    with serve_library(tmp_path_factory.mktemp("impatient"), **limits) as service:
        yield service


def list_connections(service: Service) -> set[int]:
    rows = service.fetch_all("SELECT pid FROM pg_stat_activity WHERE application_name = 'library-web'")
    return {pid for (pid,) in rows}


@postgresql_alone
def test_a_locked_table_does_not_stop_the_library(impatient_service: Service) -> None:
    def send(request: tuple[str, str, dict[str, Any]]) -> httpx.Response:
        method, address, options = request
        return client.request(method, f"/api/v2{address}", **options)

    with impatient_service.open_client() as client, psycopg.connect(impatient_service.database_url) as blocker:
        blocker.execute("LOCK TABLE books_book")
        with ThreadPoolExecutor(len(BOOK_REQUESTS)) as pool:
            responses = list(pool.map(send, BOOK_REQUESTS))
        pages = [client.get("/"), client.get("/docs"), client.get("/static/admin/css/base.css")]
        connections = list_connections(impatient_service)
        blocker.rollback()
        recovered = client.get("/api/v2/books/1")
    assert [(response.status_code, response.headers["Retry-After"]) for response in responses] == [(503, "1")] * len(
        responses
    )
    assert {response.json()["error"]["message"] for response in responses} == {BUSY}
    assert [page.status_code for page in pages] == [200] * 3
    assert recovered.status_code == 200
    assert list_connections(impatient_service) == connections


SHOW_PARAMETERS = """
import django
from django.db import connection

django.setup()
with connection.cursor() as cursor:
    for name in ("application_name", "lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
        cursor.execute(f"SHOW {name}")
        print(*cursor.fetchone())
"""


@postgresql_alone
@pytest.mark.parametrize(
    ("process", "parameters"),
    [
        ("web", ["library-web", "2s", "5s", "1min"]),
        ("worker", ["library-worker", "0", "0", "1min"]),
        ("command", ["library-command", "0", "0", "1min"]),
    ],
)
def test_only_requests_have_a_limit(process: str, parameters: list[str]) -> None:
    environment = os.environ | {"LIBRARY_PROCESS": process, "DJANGO_SETTINGS_MODULE": "library_site.settings"}
    command = [sys.executable, "-c", SHOW_PARAMETERS]
    shown = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=PROCESS_TIMEOUT
    )
    assert shown.stdout.splitlines() == parameters


@postgresql_alone
def test_a_worker_is_named_in_the_database(service: Service) -> None:
    environment = os.environ | {"DATABASE_URL": service.database_url}
    with subprocess.Popen([sys.executable, "manage.py", "deliver_webhooks"], env=environment) as worker:
        wait_until(
            lambda: bool(service.fetch_all("SELECT 1 FROM pg_stat_activity WHERE application_name = 'library-worker'"))
        )
        worker.terminate()
