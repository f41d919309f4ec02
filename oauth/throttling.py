"""The rate limit (API_RATE_LIMIT) and its headers (draft-ietf-httpapi-ratelimit-headers-10)."""

import time
from math import ceil
from typing import Any, cast

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from library_site.http.rate_limit import get_counter
from oauth.callers import get_caller_key


class CallerThrottle(BaseThrottle):
    """Counts each request, and leaves the headers for `library_site.http.middleware.add_rate_limit_headers`."""

    timer = staticmethod(time.monotonic)

    def allow_request(self, request: Request, view: Any) -> bool:
        amount, seconds = cast("tuple[int, int]", settings.API_RATE_LIMIT)
        window = get_counter(settings.REDIS_URL, seconds).count(get_caller_key(request), now=self.timer())
        self.seconds_left = max(1, min(seconds, ceil(window.seconds_left)))
        is_allowed: bool = window.requests <= amount
        request.META["library.rate_limit"] = {
            "RateLimit-Policy": f'"default";q={amount};w={seconds}',
            "RateLimit": f'"default";r={max(0, amount - window.requests)};t={self.seconds_left}',
        }
        return is_allowed

    def wait(self) -> float:
        return self.seconds_left
