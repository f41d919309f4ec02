"""Chooses the counter of a process by its settings."""

from collections.abc import Mapping
from functools import cache
from threading import Lock
from typing import Protocol

from library_site.rate_limit.windows import LocalCounter, Window

COUNTER_LOCK = Lock()
# The environ's key of the headers of a counted request, and the seconds until its caller may send the next one.
RATE_LIMIT_KEY = "library.rate_limit"
NO_LIMIT: tuple[Mapping[str, str], int] = ({}, 0)


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
