"""Chooses the counter of a process by its settings."""

from collections.abc import Mapping
from functools import cache
from threading import Lock

from library_site.rate_limit.windows import LocalCounter

COUNTER_LOCK = Lock()
# The environ's key of the headers of a counted request, and the seconds until its caller may send the next one.
RATE_LIMIT_KEY = "library.rate_limit"
NO_LIMIT: tuple[Mapping[str, str], int] = ({}, 0)


def get_counter(redis_url: str, seconds: int) -> LocalCounter:
    """Returns the counter of the process. Without the lock, two threads could create one each and count separately."""
    with COUNTER_LOCK:
        return build_counter(redis_url, seconds)


@cache
def build_counter(redis_url: str, seconds: int) -> LocalCounter:
    if not redis_url:
        return LocalCounter(seconds)
    # The import takes a tenth of a second, so it happens only if Redis is used.
    from library_site.rate_limit.redis_windows import RedisCounter

    return RedisCounter(redis_url, seconds)
