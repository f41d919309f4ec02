"""Only some threads read bodies, and not all of these the bodies of two clients."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from threading import Event
from typing import Any, NoReturn

import httpx
import pytest
from pytest_django import Settings

from library_site.http.transfer.bodies import PART_SECONDS, PART_SIZE, BodyTooSlow, read_input
from library_site.http.transfer.body_semaphore import (
    ACQUIRE_TIMEOUT,
    BodySemaphore,
    BodySlot,
    TooManyBodies,
    get_body_semaphore,
)
from library_site.http.transfer.streams import get_stream_limit
from tests.support.books import build_book


class Clock:
    """Is at the same time until it is set. `seen` is set when it was read for the second time."""

    def __init__(self) -> None:
        self.now, self.reads, self.seen = 0.0, 0, Event()

    def __call__(self) -> float:
        self.reads += 1
        if self.reads > 1:
            self.seen.set()
        return self.now


@pytest.fixture
def fill() -> Iterator[Callable[[BodySemaphore], None]]:
    """Gives all slots to clients that are slow: nobody waits for them."""
    with ExitStack() as stack:

        def fill_slots(semaphore: BodySemaphore) -> None:
            stack.callback(semaphore.acquired.clear)
            semaphore.acquired += [BodySlot(f"client {number}", float("-inf")) for number in range(semaphore.count)]

        yield fill_slots


def take_all(semaphore: BodySemaphore, *callers: str) -> list[bool]:
    """Returns for each caller whether it got a slot. The slots stay acquired."""
    results = []
    for caller in callers:
        try:
            semaphore.acquire(caller)
            results.append(True)
        except TooManyBodies:
            results.append(False)
    return results


def test_two_callers_never_have_all_slots() -> None:
    for count in (3, 4, 19):
        semaphore = BodySemaphore(count, timeout=0)
        held = take_all(semaphore, *["a", "b"] * count)
        assert held.count(True) == 2 * ((count - 1) // 2)
        assert take_all(semaphore, "c") == [True]


def test_a_caller_may_have_one_of_few_slots() -> None:
    assert take_all(BodySemaphore(1, timeout=0), "a", "a") == [True, False]
    assert take_all(BodySemaphore(2, timeout=0), "a", "a", "b") == [True, False, True]
    assert take_all(BodySemaphore(3, timeout=0), "a", "b", "c", "d") == [True, True, True, False]


def test_a_slot_is_free_again_after_a_failure_too() -> None:
    semaphore = BodySemaphore(1, timeout=0)
    with pytest.raises(ZeroDivisionError), semaphore.hold("a"):
        _ = 1 / 0
    with semaphore.hold("b"):
        assert take_all(semaphore, "c") == [False]
    assert semaphore.acquired == []


def test_a_client_that_takes_long_is_not_waited_for() -> None:
    """Else this would wait for an hour."""
    clock = Clock()
    semaphore = BodySemaphore(2, 3600, clock)
    take_all(semaphore, "a", "b")
    clock.now = 3601
    assert take_all(semaphore, "c") == [False]


def test_a_caller_waits_for_a_slot_while_a_client_is_not_slow() -> None:
    clock = Clock()
    semaphore = BodySemaphore(2, 3600, clock)
    semaphore.acquired.append(BodySlot("slow", -3600))
    with ThreadPoolExecutor() as pool:
        with semaphore.hold("a"):
            clock.now, clock.reads = 1, 0
            clock.seen.clear()
            waiting = pool.submit(semaphore.acquire, "b")
            # It has read the clock and holds the lock, which it gives up when it waits.
            assert clock.seen.wait(30)
        assert waiting.result(30).caller == "b"


def test_a_caller_waits_no_longer_than_the_time_out() -> None:
    """The times at which the first comes and begins, the second comes, and the second looks."""
    semaphore = BodySemaphore(1, 0.01, iter([0, 0, 0, 0.01]).__next__)
    assert take_all(semaphore, "a", "b") == [True, False]


def test_a_caller_with_all_its_slots_does_not_wait_for_slow_clients() -> None:
    clock = Clock()
    clock.now = 3601
    semaphore = BodySemaphore(4, 3600, clock)
    semaphore.acquired += [BodySlot("a", 0), BodySlot("a", 0), BodySlot("a", 0)]
    semaphore.count += 1
    semaphore.acquire("b")
    assert take_all(semaphore, "a") == [False]


def test_bodies_and_files_never_have_all_of_three_threads(settings: Settings) -> None:
    for settings.WEB_THREADS, *expected in ((1, 1, 1, 1), (3, 1, 1, 1), (4, 1, 2, 1), (40, 19, 20, 10)):
        semaphore, streams = get_body_semaphore.__wrapped__(), get_stream_limit.__wrapped__()
        assert [semaphore.count, streams.total, streams.per_address] == expected
        assert semaphore.timeout == ACQUIRE_TIMEOUT


@pytest.mark.parametrize("debug", [False, True])
def test_others_are_answered_while_bodies_do_not_arrive(
    api: httpx.Client, fill: Any, settings: Settings, caplog: pytest.LogCaptureFixture, debug: bool
) -> None:
    settings.DEBUG = debug
    fill(get_body_semaphore())
    for address in ("/api/v2/books", "/accounts/login/"):
        response = api.post(address, json=build_book())
        assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
        assert TooManyBodies.default_detail in response.text
    assert api.get("/api/books").json() == []
    assert not [record for record in caplog.records if record.exc_info]


class UnreadableBody:
    def read(self, size: int) -> NoReturn:
        raise AssertionError


def test_a_refused_body_is_not_read(fill: Any) -> None:
    fill(get_body_semaphore())
    with pytest.raises(TooManyBodies):
        read_input(build_environ(UnreadableBody()), limit=9)


class Body:
    """Arrives in parts. Says with each reading who has a slot."""

    def __init__(self, *parts: int) -> None:
        self.parts, self.callers = iter(parts), list[list[str]]()

    def read(self, size: int) -> bytes:
        self.callers.append([slot.caller for slot in get_body_semaphore().acquired])
        return b"x" * min(next(self.parts), size)


def build_environ(body: Any, **fields: str) -> dict[str, Any]:
    usual = {"REQUEST_METHOD": "POST", "REMOTE_ADDR": "192.0.2.1", "wsgi.input": body, "wsgi.input_terminated": True}
    return {**usual, **fields}


def test_slots_are_those_of_the_network_of_the_client(settings: Settings) -> None:
    for proxies, network in ((0, "192.0.2.1"), (1, "2001:db8::/64")):
        settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"NUM_PROXIES": proxies}
        body = Body(1)
        read_input(build_environ(body, HTTP_X_FORWARDED_FOR="192.0.2.9, 2001:db8::9"), limit=9)
        assert body.callers == [[network]]


def test_what_is_beyond_the_limit_of_a_body_is_read_with_a_slot() -> None:
    """Else clients that send it slowly have all threads."""
    body = Body(2, 1)
    assert read_input(build_environ(body), limit=1).getvalue() == b"xx"
    assert body.callers == [["192.0.2.1"]] * 2
    assert get_body_semaphore().acquired == []


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(PART_SECONDS, 3 * PART_SIZE), (PART_SECONDS + 1, 3 * PART_SIZE), (PART_SECONDS + 1, PART_SIZE - 1)],
)
def test_a_body_that_arrives_too_slowly_is_refused(monkeypatch: pytest.MonkeyPatch, seconds: int, limit: int) -> None:
    """Also if it is too large, and what follows the limit is thrown away."""
    clock, is_refused = iter(range(0, 100 * seconds, seconds)), seconds > PART_SECONDS
    monkeypatch.setattr("library_site.http.transfer.bodies.time.monotonic", lambda: next(clock))
    monkeypatch.setattr(get_body_semaphore(), "timer", lambda: 0)
    body = Body(PART_SIZE, PART_SIZE, 1)
    with pytest.raises(BodyTooSlow) if is_refused else nullcontext():
        read_input(build_environ(body), limit)
    assert len(body.callers) == (1 if is_refused else 3)
    assert get_body_semaphore().acquired == []
