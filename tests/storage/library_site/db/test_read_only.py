"""After a database was read-only for a while, all threads write again at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import httpx
import pytest
from django.contrib.auth.models import Group
from django.db import InternalError, OperationalError, connection, transaction
from pytest_django import Settings

from library_site.db.sql import PreparedStatement, fetch_all
from library_site.jobs.worker import call_reconnecting
from tests.support.books import build_book

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 4
BOOKS = "/api/v2/books"
# A session keeps both for as long as it lasts.
READ_ONLY_OPTIONS = {
    "postgresql": {"options": "-c default_transaction_read_only=on"},
    "sqlite": {"init_command": "PRAGMA query_only = ON"},
}
IS_READ_ONLY_SQL = {"postgresql": "SHOW transaction_read_only", "sqlite": "PRAGMA query_only"}
INSERT_SQL = "INSERT INTO auth_group (name) VALUES ({}) RETURNING id"
RunInThreads = Callable[[Callable[[], Any]], list[Any]]


@contextmanager
def make_read_only() -> Iterator[None]:
    """Makes the sessions read-only that begin during the block."""
    connection.close()
    with patch.dict(connection.settings_dict["OPTIONS"], READ_ONLY_OPTIONS[connection.vendor]):
        yield


@pytest.fixture
def run_in_threads() -> Iterator[RunInThreads]:
    """Runs a call in each of THREADS, which keep their connections, and returns the results."""
    barrier = Barrier(THREADS, timeout=60)

    def run(call: Callable[[], Any]) -> list[Any]:
        return [*pool.map(lambda _: (barrier.wait(), call())[1], range(THREADS))]

    with ThreadPoolExecutor(THREADS) as pool:
        yield run
        run(lambda: connection.close())


@pytest.fixture(params=[True, False])
def client(
    request: pytest.FixtureRequest, application: "WSGIApplication", settings: Settings
) -> Iterator[httpx.Client]:
    """A client of the compiled path, and one of Django's."""
    settings.COMPILED_PATH = request.param
    with httpx.Client(transport=httpx.WSGITransport(application), base_url="http://127.0.0.1") as client:
        yield client


def test_every_thread_writes_again(run_in_threads: RunInThreads, client: httpx.Client) -> None:
    def read() -> int:
        return client.get(BOOKS).status_code

    def write() -> int:
        return client.post(BOOKS, json=build_book()).status_code

    with make_read_only():
        during = run_in_threads(read), run_in_threads(write)
    after = run_in_threads(write)
    assert during == ([200] * THREADS, [503] * THREADS)
    assert after == [201] * THREADS


WRITES: list[Callable[[], object]] = [
    lambda: Group.objects.create(name="alone"),
    transaction.atomic(lambda: Group.objects.create(name="in a transaction")),
    transaction.atomic(transaction.atomic(lambda: Group.objects.create(name="in a savepoint"))),
    lambda: connection.cursor().executemany(INSERT_SQL.format("%s").partition(" RET")[0], [["many"]]),
    lambda: PreparedStatement(INSERT_SQL.format("'prepared'")).fetch_all(),
]


@pytest.mark.parametrize("write", WRITES)
def test_what_a_read_only_database_refuses_is_done_on_the_next_connection(write: Callable[[], object]) -> None:
    with make_read_only(), pytest.raises((InternalError, OperationalError), match=r"read-?only"):
        write()
    write()
    assert Group.objects.exists()


def test_another_error_keeps_the_connection() -> None:
    connection.ensure_connection()
    before = connection.connection
    with pytest.raises(Exception, match="nothing"):
        fetch_all("SELECT nothing")
    assert connection.connection is before


def is_read_only() -> bool:
    return fetch_all(IS_READ_ONLY_SQL[connection.vendor])[0][0] in ("on", 1)


@pytest.mark.skipif(connection.vendor == "sqlite", reason="A connection to SQLite does not say that it is read-only")
def test_a_session_at_a_standby_ends_with_the_next_request(client: httpx.Client) -> None:
    """Its books grow old when the address leads to the primary again."""
    for address in (BOOKS, f"{BOOKS}/1", "/api/v2/events"):
        with make_read_only():
            assert is_read_only()
        client.get(address)
        assert not is_read_only()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="A connection to SQLite does not say that it is read-only")
def test_a_worker_that_only_reads_leaves_a_standby() -> None:
    with make_read_only():
        assert call_reconnecting(is_read_only)
    assert not call_reconnecting(is_read_only)
