"""Only some threads read bodies, and not all of these the bodies of one address."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event
from typing import Any, NoReturn

import httpx
import pytest
from pytest_django import Settings

from library_site.http.bodies import buffer_body
from library_site.http.slots import PATIENCE, Holder, Slots, SlotsTaken, get_body_slots
from library_site.http.streams import get_stream_limit
from tests.support.books import build_book
from tests.support.pages import parse_error

pytestmark = pytest.mark.database_independent


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
def fill() -> Iterator[Callable[[Slots], None]]:
    """Gives all slots to clients that are slow: nobody waits for them."""
    with ExitStack() as stack:

        def fill_slots(slots: Slots) -> None:
            stack.callback(slots.holders.clear)
            slots.holders += [Holder(f"client {number}", float("-inf")) for number in range(slots.count)]

        yield fill_slots


def fail() -> NoReturn:
    raise RuntimeError


def take_all(slots: Slots, *callers: str) -> list[bool]:
    """Returns for each caller whether it got a slot. The slots stay taken."""
    results = []
    for caller in callers:
        try:
            slots.take(caller)
            results.append(True)
        except SlotsTaken:
            results.append(False)
    return results


def test_so_many_threads_wait_at_most() -> None:
    slots = Slots(3, patience=0)
    assert take_all(slots, "a", "b", "c", "d") == [True, True, True, False]


def test_one_caller_never_has_all() -> None:
    assert take_all(Slots(3, patience=0), "a", "a", "a", "b", "c") == [True, True, False, True, False]
    assert take_all(Slots(1, patience=0), "a", "a") == [True, False]


def test_a_slot_is_free_again_after_a_failure_too() -> None:
    slots = Slots(1, patience=0)
    with pytest.raises(RuntimeError), slots.hold("a"):
        fail()
    with slots.hold("b"):
        assert take_all(slots, "c") == [False]
    assert slots.holders == []


def test_a_client_that_takes_long_is_not_waited_for() -> None:
    """Else this would wait for an hour."""
    clock = Clock()
    slots = Slots(2, 3600, clock)
    take_all(slots, "a", "b")
    clock.now = 3601
    assert take_all(slots, "c") == [False]


def test_one_waits_for_a_slot_as_long_as_one_client_is_not_slow() -> None:
    clock = Clock()
    slots = Slots(2, 3600, clock)
    slots.holders.append(Holder("slow", -3600))
    with ThreadPoolExecutor() as pool:
        with slots.hold("a"):
            clock.now, clock.reads = 1, 0
            clock.seen.clear()
            waiting = pool.submit(slots.take, "b")
            # It has read the clock and holds the lock, which it gives up when it waits.
            assert clock.seen.wait(30)
        assert waiting.result(30).caller == "b"


def test_one_waits_for_no_longer_than_that() -> None:
    """The times at which the first comes and begins, the second comes, and the second looks."""
    slots = Slots(1, 1, iter([0.0, 0.0, 0.0, 1.0]).__next__)
    assert take_all(slots, "a", "b") == [True, False]


def test_one_does_not_wait_for_those_whose_end_would_not_help() -> None:
    clock = Clock()
    clock.now = 3601
    slots = Slots(4, 3600, clock)
    slots.holders += [Holder("a", 0), Holder("a", 0), Holder("a", 0)]
    slots.count += 1
    slots.take("b")
    assert take_all(slots, "a") == [False]


@pytest.mark.parametrize(("threads", "count"), [(1, 1), (4, 1), (8, 3), (40, 19)])
def test_bodies_and_files_never_have_all_threads(settings: Settings, threads: int, count: int) -> None:
    settings.WEB_THREADS = threads
    slots, streams = get_body_slots.__wrapped__(), get_stream_limit.__wrapped__()
    assert (slots.count, slots.patience) == (count, PATIENCE)
    assert slots.count + streams.total < threads or threads == 1


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books", "/accounts/login/"])
def test_others_are_answered_while_bodies_do_not_arrive(
    api: httpx.Client, book: dict[str, Any], fill: Any, address: str
) -> None:
    fill(get_body_slots())
    answer = api.post(address, json=build_book(isbn="refused"))
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert api.get("/api/books").json() == [book]


def test_a_refusal_has_the_shape_of_the_version(api: httpx.Client, fill: Any) -> None:
    fill(get_body_slots())
    assert api.post("/api/books", json=build_book()).json() == {"detail": SlotsTaken.message}
    assert parse_error(api.post("/api/v2/books", json=build_book()))[:2] == (503, "UNAVAILABLE")


class UnreadableBody:
    def read(self, size: int) -> NoReturn:
        raise AssertionError


def test_a_refused_body_is_not_read(fill: Any) -> None:
    fill(get_body_slots())
    environ: dict[str, Any] = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": "9", "wsgi.input": UnreadableBody()}

    def read_body(environ: dict[str, Any], _: object) -> list[bytes]:
        return [environ["wsgi.input"].read(), environ["CONTENT_LENGTH"].encode()]

    assert buffer_body(read_body)(environ, lambda *_: lambda _: None) == [b"", b"0"]


class LargeBody:
    """Is larger than its limit. Says with each reading who has a slot."""

    def __init__(self) -> None:
        self.left, self.callers = 3, list[list[str]]()

    def read(self, size: int) -> bytes:
        self.callers.append([holder.caller for holder in get_body_slots().holders])
        length = min(self.left, size)
        self.left -= length
        return b"x" * length


def test_what_is_beyond_the_limit_of_a_body_is_read_with_a_slot() -> None:
    """Else clients that send it slowly have all threads."""
    body = LargeBody()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "REMOTE_ADDR": "192.0.2.1",
        "CONTENT_LENGTH": "3",
        "library.body_limit": 1,
        "wsgi.input": body,
    }
    buffer_body(lambda *_: [])(environ, lambda *_: lambda _: None)
    assert body.left == 0
    assert body.callers == [["192.0.2.1"]] * 3
    assert get_body_slots().holders == []


def test_a_body_that_was_read_holds_no_slot(api: httpx.Client) -> None:
    for address in ("/api/books", "/api/books", "/accounts/login/"):
        api.post(address, json=build_book())
    assert get_body_slots().holders == []
