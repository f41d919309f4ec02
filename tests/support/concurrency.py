"""Sends requests or runs transactions at the same time."""

from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import httpx
from django.db import connection

from library_site.db import sql
from tests.support.server import Service
from tests.support.waiting import wait_until

T = TypeVar("T")


def run_concurrently(service: Service, calls: Iterable[Callable[[httpx.Client], T]]) -> list[T]:
    """Runs each call in its own thread with its own connection; all start at the same moment.

    Returns the results in the order of the calls.
    """
    calls = list(calls)
    barrier = Barrier(len(calls), timeout=60)

    def run_call(call: Callable[[httpx.Client], T]) -> T:
        with service.open_client() as client:
            client.get("/")
            barrier.wait()
            return call(client)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run_call, calls))


def count_statuses(responses: Iterable[httpx.Response]) -> Counter[int]:
    return Counter(response.status_code for response in responses)


def start_concurrently(call: Callable[[], T]) -> "Future[T]":
    """Starts the call with its own connection. Returns when it waits for the transaction of this one, or has ended."""
    executor = ThreadPoolExecutor(1)
    future = executor.submit(run_and_disconnect, call)
    executor.shutdown(wait=False)
    wait_until(lambda: future.done() or has_waiting_transaction())
    return future


def run_and_disconnect(call: Callable[[], T]) -> T:
    try:
        return call()
    finally:
        connection.close()


def has_waiting_transaction() -> bool:
    """Always true on SQLite, where a writer waits before its first statement."""
    if connection.vendor == "sqlite":
        return True
    [(is_waiting,)] = sql.fetch_all("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
    return bool(is_waiting)
