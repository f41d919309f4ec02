"""How often a caller may ask (API_RATE_LIMIT), and the headers that tell (draft-ietf-httpapi-ratelimit-headers-10)."""

import time
from functools import cache
from math import ceil
from threading import Lock
from typing import Any, cast

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from library_site.http.rate_limit import OwnWindows, SharedWindows
from oauth.callers import caller

making = Lock()


class CallerThrottle(BaseThrottle):
    """Counts a request, whichever view it is for, and leaves to `middleware.rate_limit_told` what to tell of it."""

    timer = staticmethod(time.monotonic)

    def allow_request(self, request: Request, view: Any) -> bool:
        amount, seconds = cast("tuple[int, int]", settings.API_RATE_LIMIT)
        window = windows(settings.REDIS_URL, seconds).count(caller(request), now=self.timer())
        self.seconds_left = max(1, min(seconds, ceil(window.left)))
        allowed: bool = window.requests <= amount
        request.META["library.rate_limit"] = {
            "RateLimit-Policy": f'"default";q={amount};w={seconds}',
            "RateLimit": f'"default";r={max(0, amount - window.requests)};t={self.seconds_left}',
        }
        return allowed

    def wait(self) -> float:
        return self.seconds_left


def windows(redis_url: str, seconds: int) -> OwnWindows | SharedWindows:
    """The process's windows. A cache alone would let two threads make them, and each count in its own."""
    with making:
        return made(redis_url, seconds)


@cache
def made(redis_url: str, seconds: int) -> OwnWindows | SharedWindows:
    return SharedWindows(redis_url, seconds) if redis_url else OwnWindows(seconds)
