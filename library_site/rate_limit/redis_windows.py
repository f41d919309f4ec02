"""Counts requests per caller in Redis, for all processes and machines."""

import logging
from contextlib import suppress
from threading import Lock

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from library_site.rate_limit.windows import LocalCounter, Window

log = logging.getLogger(__package__)

# Seconds that a request waits for Redis.
REDIS_TIMEOUT = 0.25
# Seconds between two tries while Redis does not answer.
REDIS_RETRY_AFTER = 1.0

COUNT_SCRIPT = """
local requests = redis.call('INCR', KEYS[1])
if requests == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {requests, redis.call('PTTL', KEYS[1])}
"""


class RedisCounter:
    """Counts windows of `seconds` in Redis; while Redis does not answer, in this process.

    Redis uses its own clock, so the clocks of the machines may differ.
    """

    def __init__(self, url: str, seconds: int) -> None:
        self.seconds = seconds
        self.fallback = LocalCounter(seconds)
        self.lock = Lock()
        self.next_try: float | None = None
        self.script = open_redis(url).register_script(COUNT_SCRIPT)

    def count(self, caller: str, now: float) -> Window:
        was_unreachable = self.next_try is not None
        if was_unreachable and not self.may_try(now):
            return self.fallback.count(caller, now)
        try:
            # The key contains the length of the window, so a new setting does not use windows of the old length.
            requests, milliseconds = self.script([f"library:rate:{self.seconds}:{caller}"], [self.seconds * 1000])
        except RedisError as error:
            self.record_failure(error, now)
            return self.fallback.count(caller, now)
        if was_unreachable:
            self.record_recovery()
        return Window(requests, milliseconds / 1000)

    def may_try(self, now: float) -> bool:
        """Returns true once in REDIS_RETRY_AFTER seconds: other requests must not wait for a Redis that hangs."""
        with self.lock:
            may_try = self.next_try is None or now >= self.next_try
            if may_try:
                self.next_try = now + REDIS_RETRY_AFTER
        return may_try

    def record_failure(self, error: RedisError, now: float) -> None:
        with self.lock:
            is_first, self.next_try = self.next_try is None, now + REDIS_RETRY_AFTER
        if is_first:
            log.error("Redis does not answer, so each process counts requests itself: %s", error)

    def record_recovery(self) -> None:
        with self.lock:
            is_first, self.next_try = self.next_try is not None, None
        if is_first:
            log.warning("Redis answers again and counts requests.")


def open_redis(url: str) -> Redis:
    """Connects without retries, which could count a request twice. Protocol 2 needs no HELLO: every Redis has it."""
    timeouts = {"socket_timeout": REDIS_TIMEOUT, "socket_connect_timeout": REDIS_TIMEOUT}
    return Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0), **timeouts)


def is_redis_up(url: str) -> bool:
    with suppress(RedisError), open_redis(url) as redis:
        return bool(redis.ping())
    return False
