"""Sends one request to a receiver, and returns its result."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

from aiodns.error import DNSError
from django.conf import settings
from django.utils.translation import gettext_noop

from library_site.jobs.leases import POISONED_REASON
from library_site.monitoring import tracing
from library_site.outbound.addresses import ForbiddenAddress
from library_site.outbound.client import Client, ResponseTooLong
from webhooks.delivery.attempts import AttemptResult
from webhooks.delivery.leases import LeasedDelivery
from webhooks.models import MAX_ANSWER_BYTES
from webhooks.signing import EVENT, sign
from webhooks.ssrf import validate_url

# The timeout of a whole request in seconds: connection, headers and body.
REQUEST_TIMEOUT = 10
# How many bytes of an answer are read: its headers and the stored part of its body in any transfer encoding.
MAX_RESPONSE_TRAFFIC = 2 * MAX_ANSWER_BYTES
HEADERS = {"Content-Type": "application/json"}

BROKEN_MESSAGE = gettext_noop("The connection broke, or the answer was no HTTP.")
# The texts of errors for the endpoint's owner; the first match is used.
ERROR_MESSAGES: list[tuple[type[Exception], str]] = [
    (TimeoutError, gettext_noop("No whole answer came in time.")),
    (ForbiddenAddress, gettext_noop("Not a public address with https, and WEBHOOKS_ALLOW_PRIVATE is off.")),
    (ResponseTooLong, gettext_noop("Too much came before the final status and its headers ended.")),
    (DNSError, gettext_noop("The host is not known.")),
    (ssl.SSLError, gettext_noop("The certificate or the TLS connection is not good.")),
    (ConnectionResetError, BROKEN_MESSAGE),
    (OSError, gettext_noop("Nobody answers at the address.")),
    (Exception, BROKEN_MESSAGE),
]


# A worker validates each URL only once.
validate_url_cached = lru_cache(maxsize=10_000)(validate_url)


class DatabaseClock:
    """The database's time, which all workers share. Between two calls of `set` the process's own clock continues it."""

    def __init__(self, now: datetime) -> None:
        self.set(now)

    def set(self, now: datetime) -> None:
        self.offset = now.timestamp() - time.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.offset + time.monotonic(), UTC)


class Sender(NamedTuple):
    """The shared state of all requests; `now` returns the time for their timestamps."""

    client: Client
    allow_private: bool
    now: Callable[[], datetime]


@asynccontextmanager
async def open_sender(now: Callable[[], datetime], time_out: float = REQUEST_TIMEOUT) -> AsyncIterator[Sender]:
    allow_private: bool = settings.WEBHOOKS_ALLOW_PRIVATE
    async with aclosing(Client(time_out, MAX_RESPONSE_TRAFFIC, allow_private, HEADERS)) as client:
        yield Sender(client, allow_private, now)


async def send_delivery(sender: Sender, delivery: LeasedDelivery) -> AttemptResult:
    """If the change was traced, the request goes on with its trace."""
    if tracing.active_traces is None:
        return await post_delivery(sender, delivery, delivery.traceparent)
    with tracing.active_traces.trace_delivery(delivery.kind, delivery.traceparent) as span:
        result = await post_delivery(sender, delivery, span.traceparent)
        span.set_result(result.status)
        return result


async def post_delivery(sender: Sender, delivery: LeasedDelivery, traceparent: str | None) -> AttemptResult:
    """A 2xx is a success even if the rest of the response is broken: the receiver has the event. All else is none."""
    started_at, start = sender.now(), time.monotonic()

    def build_result(**values: Any) -> AttemptResult:
        return AttemptResult(delivery, started_at, round((time.monotonic() - start) * 1000), **values)

    if delivery.is_poisoned:
        return build_result(error=POISONED_REASON, is_permanent=True)
    timestamp = int(started_at.timestamp())
    signed = sign(delivery.form, delivery.secrets, delivery.event_id, timestamp, delivery.body)
    headers = {**({"traceparent": traceparent} if traceparent else {}), EVENT: delivery.kind, **signed}
    try:
        # The URL was valid at registration, but the setting may have changed.
        validate_url_cached(delivery.url, sender.allow_private)
        response = await sender.client.request("POST", delivery.url, headers, delivery.body)
    # A receiver can cause any exception; each is recorded, and the delivery is retried.
    except Exception as error:
        return build_result(error=describe_sending_error(error), is_permanent=isinstance(error, ForbiddenAddress))
    retry_after = parse_retry_after(", ".join(response.headers["retry-after"]), sender.now())
    return build_result(status=response.status, answer=bytes(response.body[:MAX_ANSWER_BYTES]), retry_after=retry_after)


def parse_retry_after(retry_after: str, now: datetime) -> int | None:
    """Parses Retry-After, a number or a date (RFC 9110, 10.2.3), into seconds; None if it is neither."""
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10:
        return int(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
        return round((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp())
    except (ValueError, OverflowError):
        return None


def describe_sending_error(error: Exception) -> str:
    return next(message for kind, message in ERROR_MESSAGES if isinstance(error, kind))
