"""Bounds how many threads of a process read bodies.

A client that does not send its body blocks a thread: the server's `read` returns when the bytes have arrived or the
client has disconnected. Nothing can interrupt it. A response before its end stops the whole process, because the server
then waits for it while it holds Python's lock. So only some threads may read bodies at a time, and two clients never
get all of them if there are three or more.
"""

import time
from collections.abc import Callable
from functools import cache
from threading import Condition
from typing import ClassVar, NamedTuple

from django.conf import settings

from library_site.http.api_errors import APIError

# Seconds after which a rejected client may try again.
BODY_RETRY_AFTER = "5"
# Seconds that a request waits for a slot; it occupies its thread meanwhile. A body that takes longer is slow, and no
# request waits for it.
PATIENCE = 0.5


class TooManyBodies(APIError):
    """All slots are in use, or all that this client may have."""

    status = 503
    message = "The library waits for many bodies already, try again later"
    headers: ClassVar = {"Retry-After": BODY_RETRY_AFTER}


class Holder(NamedTuple):
    caller: str
    began_at: float


class BodySemaphore:
    """Has `count` slots. One caller gets fewer than half of them, but at least one. Others wait `patience` seconds.

    They do not wait if all slots in question have been held for longer than that.
    """

    def __init__(self, count: int, patience: float = PATIENCE, timer: Callable[[], float] = time.monotonic) -> None:
        self.count, self.count_per_caller = count, max(1, (count - 1) // 2)
        self.patience, self.timer = patience, timer
        self.changed = Condition()
        self.holders: list[Holder] = []

    def hold(self, caller: str) -> "AcquiredSlot":
        """Returns a context manager that holds a slot. To enter it raises TooManyBodies if no slot becomes free."""
        return AcquiredSlot(self, caller)

    def take(self, caller: str) -> Holder:
        """Raises TooManyBodies."""
        deadline = self.timer() + self.patience
        with self.changed:
            while obstacles := self.list_obstacles(caller):
                now = self.timer()
                are_slow = all(holder.began_at < now - self.patience for holder in obstacles)
                if are_slow or now >= deadline:
                    raise TooManyBodies
                self.changed.wait(deadline - now)
            holder = Holder(caller, self.timer())
            self.holders.append(holder)
        return holder

    def release(self, holder: Holder) -> None:
        with self.changed:
            self.holders.remove(holder)
            self.changed.notify_all()

    def list_obstacles(self, caller: str) -> list[Holder]:
        """Returns the slots that keep the caller from getting one: one of them must be released first."""
        if len(self.holders) >= self.count:
            return self.holders
        own = [holder for holder in self.holders if holder.caller == caller]
        return own if len(own) >= self.count_per_caller else []


class AcquiredSlot:
    """A slot while a `with` statement runs; a generator would take three times as long."""

    __slots__ = ("caller", "holder", "slots")

    def __init__(self, slots: BodySemaphore, caller: str) -> None:
        self.slots, self.caller = slots, caller

    def __enter__(self) -> None:
        self.holder = self.slots.take(self.caller)

    def __exit__(self, *_: object) -> None:
        self.slots.release(self.holder)


@cache
def get_body_semaphore() -> BodySemaphore:
    """Returns the slots of this process. With three threads or more, these and `streams` leave one thread free."""
    return BodySemaphore(max(1, settings.WEB_THREADS // 2 - 1))
