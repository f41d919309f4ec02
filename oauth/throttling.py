"""The rate limit (API_RATE_LIMIT) with its headers (draft-ietf-httpapi-ratelimit-headers-10), and the limit on
concurrent streamed responses.
"""

import time
from collections.abc import Callable
from math import ceil
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import FileResponse, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from library_site.api.shipped import remember
from library_site.http.api_errors import APIError
from library_site.http.callers import get_address_key, get_caller_key
from library_site.http.errors import render_content
from library_site.http.transfer.streams import get_stream_limit
from library_site.http.versions import PROGRAM_PREFIXES
from library_site.rate_limit.counters import NO_LIMIT, RATE_LIMIT_KEY, get_counter

# Requests with a wrong version, credential or method are rejected before the throttle.
REFUSED_STATUSES = {400, 401, 403, 405}


@remember
class CallerThrottle(BaseThrottle):
    """Counts each request, and stores the headers for `count_refusals`."""

    timer = staticmethod(time.monotonic)

    def allow_request(self, request: Request, view: Any) -> bool:
        self.seconds = count_request(request, get_caller_key(request))
        return self.seconds == 0

    def wait(self) -> float:
        return self.seconds


def count_request(request: HttpRequest | Request, caller: str) -> int:
    """Returns the seconds until the caller may send the next request; 0 if this one is within the limit.

    A request is counted once, also if the compiled path counts it and then passes it to Django.
    """
    if RATE_LIMIT_KEY in request.META:
        return cast("int", request.META[RATE_LIMIT_KEY][1])
    amount, seconds = cast("tuple[int, int]", settings.API_RATE_LIMIT)
    window = get_counter(settings.REDIS_URL, seconds).count(caller, now=CallerThrottle.timer())
    seconds_left = max(1, min(seconds, ceil(window.seconds_left)))
    headers = {
        "RateLimit-Policy": f'"default";q={amount};w={seconds}',
        "RateLimit": f'"default";r={max(0, amount - window.requests)};t={seconds_left}',
    }
    seconds_to_wait = seconds_left if window.requests > amount else 0
    request.META[RATE_LIMIT_KEY] = headers, seconds_to_wait
    return seconds_to_wait


def count_refusals(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Django middleware: adds the limit's headers, and counts requests that failed before the throttle, by address.

    The status of such a response stays the same: 405, 400, 401 and 403 come before 429.
    """

    if not settings.API_RATE_LIMIT:
        raise MiddlewareNotUsed

    def wrapper(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.path_info.startswith(PROGRAM_PREFIXES):
            return response
        if response.status_code in REFUSED_STATUSES and RATE_LIMIT_KEY not in request.META:
            count_request(request, get_address_key(request))
        headers, _ = request.META.get(RATE_LIMIT_KEY, NO_LIMIT)
        for name, value in headers.items():
            response[name] = value
        return response

    return wrapper


def bound_streams(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Django middleware: rejects a streamed response if this process or the client's address has too many of them.

    A FileResponse is a static file and does not count: a page loads many, and the server reads them at once.
    """

    def wrapper(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not isinstance(response, StreamingHttpResponse) or isinstance(response, FileResponse):
            return response
        try:
            stream = get_stream_limit().open_stream(get_address_key(request))
        except APIError as refusal:
            return render_content(request, refusal.get_content(request))
        cast("Any", response)._resource_closers.append(stream.close)
        return response

    return wrapper
