"""Chooses the counter of a process by its settings."""

from functools import cache
from threading import Lock
from typing import Protocol

from library_site.rate_limit.windows import LocalCounter, Window

COUNTER_LOCK = Lock()
# Keys of the environ: the rate limit headers, and the seconds until the next request is allowed.
HEADERS_KEY, WAIT_KEY = "library.rate_limit", "library.rate_limit_wait"


class Counter(Protocol):
    def count(self, caller: str, now: float) -> Window: ...


def get_counter(redis_url: str, seconds: int) -> Counter:
    """Returns the counter of the process. Without the lock, two threads could create one each and count separately."""
    with COUNTER_LOCK:
        return make_counter(redis_url, seconds)


@cache
def make_counter(redis_url: str, seconds: int) -> Counter:
    if not redis_url:
        return LocalCounter(seconds)
    # The import takes a tenth of a second, so it happens only if Redis is used.
    from library_site.rate_limit.redis_windows import RedisCounter

    return RedisCounter(redis_url, seconds)
