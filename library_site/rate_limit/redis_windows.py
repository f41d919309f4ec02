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


class RedisCounter(LocalCounter):
    """Counts windows of `seconds` in Redis; while Redis does not answer, in this process.

    Redis uses its own clock, so the clocks of the machines may differ.
    """

    def __init__(self, url: str, seconds: int) -> None:
        super().__init__(seconds)
        self.state_lock = Lock()
        # When Redis is asked again; 0 while it answers.
        self.next_try = 0.0
        self.script = open_redis(url).register_script(COUNT_SCRIPT)

    def count(self, caller: str, now: float) -> Window:
        with self.state_lock:
            if now < self.next_try:
                return super().count(caller, now)
            if self.next_try:
                # Other requests must not wait for a Redis that hangs.
                self.next_try = now + REDIS_RETRY_AFTER
        try:
            # The key contains the length of the window, so a new setting does not use windows of the old length.
            requests, milliseconds = self.script([f"library:rate:{self.seconds}:{caller}"], [self.seconds * 1000])
        except RedisError as error:
            self.record(now + REDIS_RETRY_AFTER, f"Redis does not answer, so each process counts requests: {error}")
            return super().count(caller, now)
        if self.next_try:
            self.record(0.0, "Redis answers again and counts requests.")
        return Window(requests, milliseconds / 1000)

    def record(self, next_try: float, message: str) -> None:
        """Logs whether Redis answers, once for all threads."""
        with self.state_lock:
            has_changed, self.next_try = bool(next_try) != bool(self.next_try), next_try
        if has_changed:
            log.log(logging.ERROR if next_try else logging.WARNING, message)


def open_redis(url: str) -> Redis:
    """Connects without retries, which could count a request twice. Protocol 2 needs no HELLO: every Redis has it."""
    timeouts = {"socket_timeout": REDIS_TIMEOUT, "socket_connect_timeout": REDIS_TIMEOUT}
    return Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0), **timeouts)


def is_redis_up(url: str) -> bool:
    with suppress(RedisError), open_redis(url) as redis:
        return bool(redis.ping())
    return False
