"""Idempotency-Key where requests fail, race and are interrupted: each is carried out once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection

from tests.support.books import build_book
from tests.support.concurrency import run_concurrently
from tests.support.pages import parse_error
from tests.support.replays import KEY, get_replayed_parts, is_replayed, require_replay
from tests.support.server import Service
from tests.support.waiting import wait_until

BOOKS = "/api/v2/books"


def find_by_isbn(client: httpx.Client, isbn: str) -> list[dict[str, Any]]:
    books: list[dict[str, Any]] = client.get(BOOKS, params={"isbn": isbn}).json()["results"]
    return books


@pytest.mark.parametrize("table", ["books_book", "books_keptanswer"])
def test_a_failure_of_the_library_is_not_stored_and_leaves_nothing(api: httpx.Client, table: str) -> None:
    body = build_book()
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} ADD COLUMN cellar integer DEFAULT 0 CHECK (cellar > 0)")
    failures = [api.post(BOOKS, json=body, headers=KEY) for _ in range(2)]
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DROP COLUMN cellar")
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
def hold_responses(url: str) -> Iterator[Callable[[], bool]]:
    """Stops each request with a key between the write of its book and the write of its stored answer.

    Yields a predicate: whether a request is stopped.
    """
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as observer:
        holder.execute("LOCK TABLE books_keptanswer IN EXCLUSIVE MODE")
        yield lambda: observer.execute("SELECT 1 FROM pg_locks WHERE NOT granted").rowcount > 0
        holder.rollback()


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite's writers wait for each other before they begin")
def test_a_repetition_of_a_request_in_flight_is_a_conflict(service: Service) -> None:
    body = build_book()
    post = partial(httpx.Client.post, url=BOOKS, json=body, headers={"Idempotency-Key": body["isbn"]})
    with service.open_client() as first_client, service.open_client() as second_client, ThreadPoolExecutor() as pool:
        with hold_responses(service.database_url) as is_held:
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
