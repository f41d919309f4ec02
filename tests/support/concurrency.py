"""Requests at the same time."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import httpx

from tests.support.serving import Service

T = TypeVar("T")


def at_once(service: Service, calls: Iterable[Callable[[httpx.Client], T]]) -> list[T]:
    """Runs each call in a thread and over a connection of its own, all let go at one moment."""
    calls = list(calls)
    gate = Barrier(len(calls), timeout=60)

    def run(call: Callable[[httpx.Client], T]) -> T:
        with service.client() as client:
            client.get("/")
            gate.wait()
            return call(client)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def statuses(answers: Iterable[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


def until(condition: Callable[[], bool]) -> None:
    """Waits, for half a minute at the most."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
