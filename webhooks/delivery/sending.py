"""Sends one request to a receiver, and returns its result."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from django.conf import settings
from yarl import URL

from library_site.jobs.leases import POISONED_REASON
from library_site.monitoring.tracing import trace_delivery
from webhooks.delivery.attempts import AttemptResult
from webhooks.delivery.leases import LeasedDelivery
from webhooks.models import MAX_ANSWER_BYTES
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP, signature
from webhooks.ssrf import ForbiddenAddress, make_socket_factory, validate_url

# Seconds for the whole request: connection, headers and body.
REQUEST_TIMEOUT = 10
# The bytes of one answer that are parsed: its headers, and what is stored of its body in any encoding of the transfer.
MAX_ANSWER_TRAFFIC = 2 * MAX_ANSWER_BYTES
# The most answers before the final one, such as `100 Continue` (RFC 9110, 15.2).
MAX_INTERIM_ANSWERS = 10
# The bytes that are parsed without a look at these limits.
PART_SIZE = 4096
# No compression: the admin shows the first bytes of the answer as text.
HEADERS = {"Content-Type": "application/json", "User-Agent": "Library-API", "Accept-Encoding": "identity"}


class EndlessHead(Exception):
    """The receiver sent MAX_ANSWER_TRAFFIC bytes or MAX_INTERIM_ANSWERS, but no final status with all its headers."""


# What the endpoint's owner reads about an error; the first match counts.
ERROR_MESSAGES: list[tuple[type[Exception], str]] = [
    (TimeoutError, "No whole answer came in time."),
    (ForbiddenAddress, "The address is not a public one."),
    (EndlessHead, "Too much came before the final status and its headers ended."),
    (aiohttp.ClientConnectorDNSError, "The host is not known."),
    (ssl.SSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientSSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientConnectorError, "Nobody answers at the address."),
    (Exception, "The connection broke, or the answer was no HTTP."),
]


# A worker validates each URL once.
validate_url_cached = lru_cache(maxsize=10_000)(validate_url)


class DatabaseClock:
    """The database's time, which all workers share. Between two calls of `set` this process measures the time."""

    def __init__(self, now: datetime) -> None:
        self.set(now)

    def set(self, now: datetime) -> None:
        self.offset = now.timestamp() - time.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.offset + time.monotonic(), UTC)


class Sender(NamedTuple):
    """What all requests need; `now` returns the time of their timestamps."""

    client: aiohttp.ClientSession
    allow_private: bool
    now: Callable[[], datetime]


class BoundedResponseHandler(ResponseHandler):
    """aiohttp's protocol of a connection, which parses no more of an answer than MAX_ANSWER_TRAFFIC.

    aiohttp limits headers and the body that waits to be read. But it parses whatever else arrives, without giving the
    loop back: interim answers, extensions of chunks, empty lines, and answers that nobody requested.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.start_answer()

    def start_answer(self) -> None:
        self.bytes_left, self.interim_answers_left = MAX_ANSWER_TRAFFIC, MAX_INTERIM_ANSWERS
        # The body of the final answer, as soon as its headers are parsed.
        self.final_body: aiohttp.StreamReader | None = None

    def set_response_params(self, **parameters: Any) -> None:
        """aiohttp calls it before each request."""
        self.start_answer()
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        """The event loop calls it with what has arrived; aiohttp itself, with nothing, to resume parsing."""
        if not data:
            super().data_received(data)
        for start in range(0, len(data), PART_SIZE):
            self.receive_part(data[start : start + PART_SIZE])

    def receive_part(self, part: bytes) -> None:
        self.bytes_left -= len(part)
        is_endless = self.bytes_left < 0 or self.interim_answers_left < 0
        if self.final_body is None and is_endless:
            self.abort()
            self.set_exception(EndlessHead())
        elif self.final_body is not None and self.final_body.is_eof():
            # The answer has ended: what comes now answers no request.
            self.abort()
        elif self.final_body is not None and is_endless:
            # What is stored of the body has arrived. The connection is closed when the body has ended.
            self.force_close()
            self.final_body.feed_eof()
        else:
            super().data_received(part)

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        """aiohttp calls it with each answer whose headers are parsed."""
        message, body = data
        if message.code < 200:
            self.interim_answers_left -= 1
        elif self.final_body is None:
            self.final_body = body
        super().feed_data(data, size)


@asynccontextmanager
async def open_sender(
    connections: int, now: Callable[[], datetime], time_out: float = REQUEST_TIMEOUT
) -> AsyncIterator[Sender]:
    """Connects to public addresses only, unless private ones are allowed, and stores no cookies."""
    allow_private: bool = settings.WEBHOOKS_ALLOW_PRIVATE
    connector = aiohttp.TCPConnector(
        limit=connections,
        socket_factory=make_socket_factory(allow_private),
        # Resolves many names at the same time: libuv runs only two of the system's own look-ups at once.
        resolver=aiohttp.AsyncResolver(),
    )
    # aiohttp has no public way to choose the protocol.
    connector._factory = partial(BoundedResponseHandler, asyncio.get_running_loop())  # type: ignore[assignment]  # its subclass
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=time_out),
        headers=HEADERS,
        auto_decompress=False,
    ) as client:
        yield Sender(client, allow_private, now)


async def send_delivery(sender: Sender, delivery: LeasedDelivery) -> AttemptResult:
    """Sends the trace of the change too, if there is one."""
    with trace_delivery(delivery.kind, delivery.traceparent) as trace:
        result = await post_delivery(sender, delivery, {"traceparent": trace.traceparent} if trace.traceparent else {})
        trace.set_result(result.status)
        return result


async def post_delivery(sender: Sender, delivery: LeasedDelivery, extra_headers: Mapping[str, str]) -> AttemptResult:
    """Any status but 2xx is a failure. Redirects are not followed: a receiver could point us inside."""
    started_at, start = sender.now(), time.monotonic()

    def build_result(**values: Any) -> AttemptResult:
        return AttemptResult(delivery, started_at, round((time.monotonic() - start) * 1000), **values)

    if delivery.is_poisoned:
        return build_result(error=POISONED_REASON, is_permanent=True)
    headers = {**extra_headers, **sign_headers(delivery, int(started_at.timestamp()))}
    try:
        # The URL was valid when it was registered, but the setting may have changed since.
        validate_url_cached(delivery.url, sender.allow_private)
        url = URL(delivery.url, encoded=True)
        async with sender.client.post(url, data=delivery.body, headers=headers, allow_redirects=False) as response:
            answer = await read_beginning(response.content)
            retry_after = parse_retry_after(response.headers.get("Retry-After", ""), sender.now())
            return build_result(status=response.status, answer=answer, retry_after=retry_after)
    # A receiver can cause any kind of error; each is recorded, and the delivery is retried.
    except Exception as error:
        cause = getattr(error, "os_error", error)
        return build_result(error=describe_error(cause, error), is_permanent=isinstance(cause, ForbiddenAddress))


def sign_headers(delivery: LeasedDelivery, timestamp: int) -> dict[str, str]:
    """The headers (specification, Section 6)."""
    value = signature(delivery.form, delivery.secret, timestamp, delivery.body)
    return {EVENT: delivery.kind, TIMESTAMP: str(timestamp), SIGNATURE: value}


async def read_beginning(content: aiohttp.StreamReader) -> bytes:
    """The part of the answer that is stored; the rest is not awaited."""
    beginning = bytearray()
    while len(beginning) < MAX_ANSWER_BYTES and (chunk := await content.read(MAX_ANSWER_BYTES - len(beginning))):
        beginning += chunk
    return bytes(beginning)


def parse_retry_after(retry_after: str, now: datetime) -> float | None:
    """The seconds of the header, which is a number or a date (RFC 9110, 10.2.3); None if it is neither."""
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10:
        return int(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    except (ValueError, OverflowError):
        return None


def describe_error(*errors: BaseException) -> str:
    return next(message for kind, message in ERROR_MESSAGES if any(isinstance(error, kind) for error in errors))
