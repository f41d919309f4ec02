"""Requests counted per caller: by Redis for all processes and machines, or by this process for its threads.

A window begins with a caller's first request and lasts a fixed time. Counting a request and reading its window is one
step that no other request can come into, so as many as the limit says get through, and each is told its own place.
"""

import logging
from collections import OrderedDict
from functools import cache
from threading import Lock
from typing import NamedTuple

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

# Callers that a process remembers, in some 30 MB; beyond, the window that began first is forgotten.
MAX_CALLERS = 100_000

# Seconds that a request waits for Redis, and between two tries while it is away.
REDIS_TIMEOUT = 0.25
REDIS_RETRY_AFTER = 1.0

COUNT_SCRIPT = """
local requests = redis.call('INCR', KEYS[1])
if requests == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {requests, redis.call('PTTL', KEYS[1])}
"""


class Window(NamedTuple):
    """The requests counted in it so far, this one included, and the seconds until it ends."""

    requests: int
    seconds_left: float


class LocalCounter:
    """Windows of `seconds`, counted by this process."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        self.windows: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self.lock = Lock()

    def count(self, caller: str, now: float) -> Window:
        with self.lock:
            self.drop_ended(now)
            requests, ends = self.windows.get(caller, (0, now + self.seconds))
            self.windows[caller] = requests + 1, ends
        return Window(requests + 1, ends - now)

    def drop_ended(self, now: float) -> None:
        """Drops ended windows. All last equally long, so those that began first come first."""
        while self.windows:
            _, ends = next(iter(self.windows.values()))
            if ends > now and len(self.windows) < MAX_CALLERS:
                break
            self.windows.popitem(last=False)


class RedisCounter:
    """Windows of `seconds`, counted by Redis; while it is away, by this process.

    Redis keeps them by its own clock: machines need not agree on the time.
    """

    def __init__(self, url: str, seconds: int) -> None:
        self.seconds = seconds
        self.fallback = LocalCounter(seconds)
        self.lock = Lock()
        self.next_try: float | None = None
        # A second try would count the request twice. Without HELLO (protocol 3) any Redis is spoken to.
        patience = {"socket_timeout": REDIS_TIMEOUT, "socket_connect_timeout": REDIS_TIMEOUT}
        redis = Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0), **patience)
        self.script = redis.register_script(COUNT_SCRIPT)

    def count(self, caller: str, now: float) -> Window:
        away = self.next_try is not None
        if away and not self.may_try(now):
            return self.fallback.count(caller, now)
        try:
            # The length is in the key: a window begun under another limit would last too long.
            requests, milliseconds = self.script([f"library:rate:{self.seconds}:{caller}"], [self.seconds * 1000])
        except RedisError as error:
            self.record_failure(error, now)
            return self.fallback.count(caller, now)
        if away:
            self.record_recovery()
        return Window(requests, milliseconds / 1000)

    def may_try(self, now: float) -> bool:
        """One request in each PAUSE: the others must not wait for a Redis that hangs."""
        with self.lock:
            due = self.next_try is None or now >= self.next_try
            if due:
                self.next_try = now + REDIS_RETRY_AFTER
        return due

    def record_failure(self, error: RedisError, now: float) -> None:
        with self.lock:
            first, self.next_try = self.next_try is None, now + REDIS_RETRY_AFTER
        if first:
            log.error("Redis is away, so each process counts requests by itself: %s", error)

    def record_recovery(self) -> None:
        with self.lock:
            first, self.next_try = self.next_try is not None, None
        if first:
            log.warning("Redis is back and counts requests again.")


COUNTER_LOCK = Lock()


def get_counter(redis_url: str, seconds: int) -> LocalCounter | RedisCounter:
    """The process's windows. A cache alone would let two threads make them, and each count in its own."""
    with COUNTER_LOCK:
        return make_counter(redis_url, seconds)


@cache
def make_counter(redis_url: str, seconds: int) -> LocalCounter | RedisCounter:
    return RedisCounter(redis_url, seconds) if redis_url else LocalCounter(seconds)
