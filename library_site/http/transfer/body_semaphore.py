"""Bounds how many threads of a process read bodies.

A client that does not send its body keeps a thread: the server's `read` returns when what was asked for is there, or
the client is gone. Nothing can end it, and a response that does not wait for it stops the process, because the server
waits for the end of the reading with Python's lock. So only some threads may read bodies at a time, and two clients
never get all of these where they are three or more.
"""

import time
from collections.abc import Callable
from functools import cache
from threading import Condition
from typing import ClassVar, NamedTuple

from django.conf import settings

from library_site.http.api_errors import APIError

# Seconds after which a refused client may try again.
BODY_RETRY_AFTER = "5"
# Seconds that one waits for a slot, as a thread that is free for nothing else. Clients that take longer are slow, and
# are not waited for.
PATIENCE = 0.5


class TooManyBodies(APIError):
    """As many threads as may read bodies, or those of this client, read some already."""

    status = 503
    message = "The library waits for many bodies already, try again later"
    headers: ClassVar = {"Retry-After": BODY_RETRY_AFTER}


class Holder(NamedTuple):
    caller: str
    began_at: float


class BodySemaphore:
    """`count` threads may hold one, fewer than half of them for one caller. Others wait `patience` seconds for it.

    They do not wait for threads that have held theirs for longer than that.
    """

    def __init__(self, count: int, patience: float = PATIENCE, timer: Callable[[], float] = time.monotonic) -> None:
        self.count, self.count_per_caller = count, max(1, (count - 1) // 2)
        self.patience, self.timer = patience, timer
        self.changed = Condition()
        self.holders: list[Holder] = []

    def hold(self, caller: str) -> "AcquiredSlot":
        """Returns a context manager that holds a slot. Entering it raises TooManyBodies if none is free."""
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
        """Returns the slots of which one must become free before the caller gets a slot."""
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
    """Returns the slots of this process. With three threads or more, one stays free of bodies and files (`streams`)."""
    return BodySemaphore(max(1, settings.WEB_THREADS // 2 - 1))
