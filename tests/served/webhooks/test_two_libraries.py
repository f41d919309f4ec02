"""Two libraries as operators run them: the north sends its events to the south, whose inbox has each once."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.books import build_book
from tests.support.forked_commands import ForkedProcess
from tests.support.server import Service, copy_seeded_database, reserve_port, run_in_shell, serve_library
from tests.support.waiting import PROCESS_TIMEOUT, wait_until

CREATE_SOURCE = "from tests.support.sources import create_source; create_source('north')"
CREATE_ENDPOINT = """
from tests.support.endpoints import create_endpoint
from tests.support.sources import SECRET
from webhooks.encryption import encrypt_secret
endpoint = create_endpoint(url='http://127.0.0.1:{port}/webhooks/receive/north')
endpoint.secrets.update(sealed=encrypt_secret(SECRET))
"""


class Library(NamedTuple):
    """A library with an address that is kept for it, which tests start and stop."""

    folder: Path
    database_url: str
    port: int

    def start(self) -> AbstractContextManager[Service]:
        return serve_library(self.folder, self.database_url, PORT=str(self.port))


@pytest.fixture(scope="module")
def south(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("south")
    with reserve_port() as port, copy_seeded_database(folder) as database_url:
        run_in_shell(database_url, CREATE_SOURCE)
        yield Library(folder, database_url, port)


@pytest.fixture(scope="module")
def south_worker(south: Library) -> Iterator[None]:
    """A worker that is there also while its library is not served."""
    with start_worker(south.database_url):
        yield


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory, south: Library) -> Iterator[Service]:
    with serve_library(tmp_path_factory.mktemp("north")) as service:
        run_in_shell(service.database_url, CREATE_ENDPOINT.format(port=south.port))
        yield service


@pytest.fixture(scope="module")
def north_worker(north: Service) -> Iterator[ForkedProcess]:
    """A worker for all tests but the last, which kills it."""
    with start_worker(north.database_url) as worker:
        yield worker


@contextmanager
def start_worker(database_url: str) -> Iterator[ForkedProcess]:
    environment = os.environ | {"DATABASE_URL": database_url, "WEBHOOKS_ALLOW_PRIVATE": "true"}
    with Path(os.devnull).open("w") as nothing:
        worker = ForkedProcess(environment, "deliver_webhooks", output=nothing.fileno(), errors=nothing.fileno())
    try:
        yield worker
    finally:
        if worker.returncode is None:
            worker.send_signal(signal.SIGTERM)
            worker.wait(PROCESS_TIMEOUT)


def end_waits(library: Service) -> None:
    """Makes every waiting delivery due and ends every lease."""
    library.fetch_all("UPDATE webhooks_delivery SET next_at = created_at WHERE next_at IS NOT NULL")


def add_book(library: httpx.Client) -> dict[str, Any]:
    response = library.post("/api/v2/books", json=build_book())
    assert response.status_code == 201
    book: dict[str, Any] = response.json()
    return book


def list_received(library: Service) -> list[tuple[str, str]]:
    """The books of the events that the library has received, and what became of each event."""
    rows = library.fetch_all("SELECT body, state FROM webhooks_received ORDER BY id")
    return [(json.loads(bytes(body))["data"]["book"]["isbn"], state) for body, state in rows]


def test_a_worker_deletes_expired_sessions(north: Service, request: pytest.FixtureRequest) -> None:
    """It does so when it starts: this test comes first."""
    north.fetch_all("INSERT INTO django_session VALUES ('expired', '', '2026-01-01 00:00:00+00:00')")
    request.getfixturevalue("north_worker")
    wait_until(lambda: north.fetch_all("SELECT * FROM django_session") == [])


@pytest.mark.usefixtures("north_worker", "south_worker")
def test_a_library_that_was_down_receives_the_events_later(north: Service, south: Library) -> None:
    with north.open_client() as sender:
        book = add_book(sender)
    wait_until(lambda: north.count_rows("state = 'waiting' AND attempted = 1 AND lease IS NULL") == 1)
    with south.start() as service:
        assert list_received(service) == []
        end_waits(north)
        wait_until(lambda: list_received(service) == [(book["isbn"], "done")])


@pytest.mark.usefixtures("south_worker")
def test_no_event_is_lost_when_a_worker_is_killed(north: Service, south: Library, north_worker: ForkedProcess) -> None:
    with socket.create_server(("127.0.0.1", south.port), reuse_port=True):
        with north.open_client() as sender:
            books = [add_book(sender) for _ in range(3)]
        wait_until(lambda: north.count_rows("lease IS NOT NULL") == 3)
        north_worker.send_signal(signal.SIGKILL)
        north_worker.wait()
    end_waits(north)
    with south.start() as service, start_worker(north.database_url):
        wait_until(lambda: sorted(list_received(service)[1:]) == sorted((book["isbn"], "done") for book in books))
    assert north.count_rows("state <> 'delivered'") == 0
