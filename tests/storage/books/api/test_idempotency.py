"""Idempotency-Key where requests fail, race and are interrupted: each is carried out once."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.concurrency import run_concurrently
from tests.support.logs import kill_worker
from tests.support.pages import parse_error
from tests.support.replays import KEY, get_replayed_parts, is_replayed, require_replay
from tests.support.server import Service, serve_library
from tests.support.waiting import wait_until

BOOKS = "/api/v2/books"


def find_by_isbn(client: httpx.Client, isbn: str) -> list[dict[str, Any]]:
    books: list[dict[str, Any]] = client.get(BOOKS, params={"isbn": isbn}).json()["results"]
    return books


def test_a_failure_of_the_library_is_not_stored(api: httpx.Client) -> None:
    body = build_book()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    failures = [api.post(BOOKS, json=body, headers=KEY) for _ in range(2)]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE books_book DROP COLUMN cellar")
    success = api.post(BOOKS, json=body, headers=KEY)
    assert [parse_error(response) for response in failures] == [(500, "INTERNAL_ERROR", [])] * 2
    assert success.status_code == 201
    require_replay(success, api.post(BOOKS, json=body, headers=KEY))
    assert len(find_by_isbn(api, body["isbn"])) == 1


def test_one_of_many_requests_with_one_key_is_carried_out(service: Service) -> None:
    for _ in range(4):
        body = build_book()
        post = partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": body["isbn"]})
        responses = run_concurrently(service, [post] * 8)
        successes = [response for response in responses if response.is_success]
        refusals = [parse_error(response) for response in responses if not response.is_success]
        assert refusals == [(409, "CONFLICT", [])] * (8 - len(successes))
        assert len({get_replayed_parts(response) for response in successes}) == 1
        assert [is_replayed(response) for response in successes].count(False) == 1
        with service.open_client() as client:
            assert len(find_by_isbn(client, body["isbn"])) == 1
            repetition = post(client)
        assert (get_replayed_parts(repetition), is_replayed(repetition)) == (get_replayed_parts(successes[0]), True)


def test_the_server_refuses_a_key_that_is_not_ascii(service: Service) -> None:
    """The client within the process does not send one."""
    with service.open_client() as client:
        for key in ("é".encode(), b"\xff"):
            response = client.post(BOOKS, json=build_book(), headers={b"Idempotency-Key": key})
            assert parse_error(response) == (422, "VALIDATION_ERROR", ["Idempotency-Key"]), key


@contextmanager
def hold_responses(service: Service) -> Iterator[Callable[[], bool]]:
    """Stops each request with a key between the write of its book and the write of its stored answer.

    Yields a predicate: whether a request is stopped.
    """
    hold = hold_on_postgresql if connection.vendor == "postgresql" else hold_on_sqlite
    with hold(service.database_url) as is_held:
        yield is_held


@contextmanager
def hold_on_postgresql(url: str) -> Iterator[Callable[[], bool]]:
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as observer:
        holder.execute("LOCK TABLE books_keptanswer IN EXCLUSIVE MODE")
        yield lambda: observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").rowcount > 0
        holder.rollback()


@contextmanager
def hold_on_sqlite(url: str) -> Iterator[Callable[[], bool]]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)) as holder:
        # This count takes hours.
        shelves = ", ".join(f"books_book AS shelf_{number}" for number in range(6))
        holder.execute(
            f"CREATE TRIGGER hold BEFORE INSERT ON books_keptanswer BEGIN SELECT count(*) FROM {shelves}; END"  # noqa: S608  # names of ours
        )
        yield partial(is_locked, holder)
        holder.execute("DROP TRIGGER hold")


def is_locked(database: sqlite3.Connection) -> bool:
    try:
        database.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    database.execute("ROLLBACK")
    return False


def send_repeatedly(post: Callable[[], httpx.Response]) -> Iterator[httpx.Response]:
    """Sends a request again and again for half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        yield post()


def test_an_interrupted_request_is_carried_out_when_it_is_sent_again(tmp_path: Path) -> None:
    body = build_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers=KEY)
    with serve_library(tmp_path) as service, ThreadPoolExecutor() as pool, service.open_client() as client:
        with hold_responses(service) as is_held:
            future = pool.submit(post, client)
            wait_until(is_held)
            kill_worker(service.process.pid)
            with pytest.raises(httpx.TransportError):
                future.result()
        with service.open_client() as second_client:
            books_before = find_by_isbn(second_client, body["isbn"])
            # The database may notice the end of the worker a little later.
            retry = next(
                response for response in send_repeatedly(partial(post, second_client)) if response.status_code != 409
            )
            repetition = post(second_client)
            books_after = find_by_isbn(second_client, body["isbn"])
    assert books_before == []
    assert (retry.status_code, is_replayed(retry)) == (201, False)
    assert (get_replayed_parts(repetition), is_replayed(repetition)) == (get_replayed_parts(retry), True)
    assert books_after == [repetition.json()]


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers wait for each other before they begin")
def test_a_repetition_of_a_request_in_flight_is_a_conflict(service: Service) -> None:
    body = build_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": body["isbn"]})
    with service.open_client() as first_client, service.open_client() as second_client, ThreadPoolExecutor() as pool:
        with hold_responses(service) as is_held:
            future = pool.submit(post, first_client)
            wait_until(is_held)
            conflict = post(second_client)
        responses = [future.result(), post(second_client)]
    assert conflict.json() == {
        "error": {
            "code": "CONFLICT",
            "message": "A request with this Idempotency-Key is being answered",
            "requestId": conflict.headers["X-Request-ID"],
        }
    }
    assert conflict.status_code == 409
    require_replay(*responses)
