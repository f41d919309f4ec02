"""Sends requests at the same time, and waits for conditions."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import httpx

from tests.support.server import Service

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


def count_statuses(answers: Iterable[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def wait_until(condition: Callable[[], bool]) -> None:
    """Waits until the condition is true; fails after 30 seconds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
