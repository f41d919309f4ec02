"""Bounds how many threads of a process read bodies.

A client that does not send its body blocks a thread: nothing can interrupt the server's `read`, and a response before
it ends would block the whole process. So only some threads read bodies at a time. If there are three or more, two
clients cannot occupy all of them.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition
from typing import ClassVar, NamedTuple

from django.conf import settings

from library_site.http.api_errors import APIError

# Seconds after which a rejected client may try again.
BODY_RETRY_AFTER = "5"
# Seconds that a request waits for a slot; it occupies its thread meanwhile. A body that takes longer is slow, and no
# request waits for it.
ACQUIRE_TIMEOUT = 0.5


class TooManyBodies(APIError):
    """All slots are in use, or all that this client may have."""

    status_code = 503
    default_detail = "The library waits for many bodies already, try again later"
    headers: ClassVar = {"Retry-After": BODY_RETRY_AFTER}


class BodySlot(NamedTuple):
    caller: str
    acquired_at: float


class BodySemaphore:
    """Has `count` slots. One caller gets fewer than half of them, but at least one. Others wait `timeout` seconds.

    Nobody waits for slots that have all been taken for longer than `timeout` already.
    """

    def __init__(
        self, count: int, timeout: float = ACQUIRE_TIMEOUT, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self.count, self.count_per_caller = count, max(1, (count - 1) // 2)
        self.timeout, self.timer = timeout, timer
        self.changed = Condition()
        self.acquired: list[BodySlot] = []

    @contextmanager
    def hold(self, caller: str) -> Iterator[None]:
        """Holds a slot. Raises TooManyBodies if none becomes free."""
        slot = self.acquire(caller)
        try:
            yield
        finally:
            self.release(slot)

    def acquire(self, caller: str) -> BodySlot:
        """Raises TooManyBodies."""
        deadline = self.timer() + self.timeout
        with self.changed:
            while blocking := self.list_blocking(caller):
                now = self.timer()
                are_slow = all(slot.acquired_at < now - self.timeout for slot in blocking)
                if are_slow or now >= deadline:
                    raise TooManyBodies
                self.changed.wait(deadline - now)
            slot = BodySlot(caller, self.timer())
            self.acquired.append(slot)
        return slot

    def release(self, slot: BodySlot) -> None:
        with self.changed:
            self.acquired.remove(slot)
            self.changed.notify_all()

    def list_blocking(self, caller: str) -> list[BodySlot]:
        """Returns the slots that keep the caller from getting one: one of them must be released first."""
        if len(self.acquired) >= self.count:
            return self.acquired
        own = [slot for slot in self.acquired if slot.caller == caller]
        return own if len(own) >= self.count_per_caller else []


@cache
def get_body_semaphore() -> BodySemaphore:
    """Returns the semaphore of this process. With three threads or more, it and `streams` leave one thread free."""
    return BodySemaphore(max(1, settings.WEB_THREADS // 2 - 1))
