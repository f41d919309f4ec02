"""The north sends its events to the south, which mirrors its books: two libraries as operators run them."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.books import new_book
from tests.support.concurrency import until
from tests.support.serving import Service, in_shell, seeded_database, serving

BOOKS = "/api/v2/books"
SOURCE = "from tests.support.sources import source; source('north', mirrors=True)"
ENDPOINT = """
from tests.support.endpoints import endpoint
from tests.support.sources import SECRET
from webhooks.encryption import encrypt
made = endpoint(url='http://127.0.0.1:{port}/webhooks/receive/north')
made.secrets.update(sealed=encrypt(SECRET))
"""


class Address(NamedTuple):
    """Where the south is, whether it is up or not."""

    folder: Path
    database_url: str
    port: int

    def up(self) -> AbstractContextManager[Service]:
        return serving(self.folder, self.database_url, PORT=str(self.port))


@pytest.fixture(scope="module")
def south(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("south")
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    with seeded_database(folder) as database_url:
        in_shell(database_url, SOURCE)
        yield Address(folder, database_url, port)


@pytest.fixture(scope="module")
def north(tmp_path_factory: pytest.TempPathFactory, south: Address) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("north")) as running:
        in_shell(running.database_url, ENDPOINT.format(port=south.port))
        yield running


@contextmanager
def working(database_url: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = os.environ | {"DATABASE_URL": database_url, "WEBHOOKS_ALLOW_PRIVATE": "true"}
    command = [sys.executable, "manage.py", "deliver_webhooks"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            worker.terminate()


def time_passes(library: Service) -> None:
    """Until all that waits is due, and every lease is over."""
    library.sql("UPDATE webhooks_delivery SET next_at = created_at WHERE next_at IS NOT NULL")


def add(library: httpx.Client) -> dict[str, Any]:
    answer = library.post(BOOKS, json=new_book(title="Nördlich"))
    assert answer.status_code == 201
    book: dict[str, Any] = answer.json()
    return book


def mirrored(library: httpx.Client, book: dict[str, Any]) -> list[str]:
    """Its titles there: none, or one."""
    return [found["title"] for found in library.get(BOOKS, params={"isbn": book["isbn"]}).json()["results"]]


def test_what_happens_to_a_book_happens_to_its_mirror(north: Service, south: Address) -> None:
    with south.up() as running, working(north.database_url), working(south.database_url):
        there, here = north.client(), running.client()
        with there, here:
            book = add(there)
            until(lambda: mirrored(here, book) == ["Nördlich"])
            changed = there.patch(f"{BOOKS}/{book['id']}", json={"title": "Nordwärts"})
            until(lambda: mirrored(here, book) == ["Nordwärts"])
            deleted = there.delete(f"{BOOKS}/{book['id']}")
            until(lambda: mirrored(here, book) == [])
    assert (changed.status_code, deleted.status_code) == (200, 204)


def test_who_was_away_is_told_later(north: Service, south: Address) -> None:
    with working(north.database_url), working(south.database_url):
        with north.client() as there:
            book = add(there)
        until(lambda: north.count("state = 'waiting' AND attempted = 1 AND lease IS NULL") == 1)
        with south.up() as running, running.client() as here:
            assert mirrored(here, book) == []
            time_passes(north)
            until(lambda: mirrored(here, book) == ["Nördlich"])


def test_a_worker_that_is_killed_takes_no_event_along(north: Service, south: Address) -> None:
    with socket.create_server(("127.0.0.1", south.port)), working(north.database_url) as killed:
        with north.client() as there:
            books = [add(there) for _ in range(3)]
        until(lambda: north.count("lease IS NOT NULL") == 3)
        killed.kill()
    time_passes(north)
    with south.up() as running, working(north.database_url), working(south.database_url), running.client() as here:
        until(lambda: [mirrored(here, book) for book in books] == [["Nördlich"]] * 3)
    assert north.count("state <> 'delivered'") == 0
