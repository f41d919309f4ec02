"""One request to a receiver, and what came of it."""

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
from django.conf import settings
from yarl import URL

from webhooks.attempts import Outcome
from webhooks.delivery import LeasedDelivery
from webhooks.models import MAX_ANSWER_BYTES
from webhooks.queue import POISONED_REASON
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP, signature
from webhooks.ssrf import ForbiddenAddress, make_socket_factory, validate_url

# Seconds for all of it: connecting, headers and body.
REQUEST_TIMEOUT = 10
# People read the answer as it came.
HEADERS = {"Content-Type": "application/json", "User-Agent": "Library-API", "Accept-Encoding": "identity"}
# The words for those who own the endpoint; the first that fits.
ERROR_MESSAGES: list[tuple[type[Exception], str]] = [
    (TimeoutError, "No whole answer came in time."),
    (ForbiddenAddress, "The address is not a public one."),
    (aiohttp.ClientConnectorDNSError, "The host is not known."),
    (ssl.SSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientSSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientConnectorError, "Nobody answers at the address."),
    (Exception, "The connection broke, or the answer was no HTTP."),
]


# A worker looks at each URL once.
validate_url_cached = lru_cache(maxsize=10_000)(validate_url)


class DatabaseClock:
    """The database's time, which all workers share, carried on by this process's own pace."""

    def __init__(self, now: datetime) -> None:
        self.set(now)

    def set(self, now: datetime) -> None:
        self.behind = now.timestamp() - time.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.behind + time.monotonic(), UTC)


class Sender(NamedTuple):
    """What all requests are made with; `now` is the time that they tell."""

    client: aiohttp.ClientSession
    allow_private: bool
    now: Callable[[], datetime]


@asynccontextmanager
async def open_sender(
    connections: int, now: Callable[[], datetime], time_out: float = REQUEST_TIMEOUT
) -> AsyncIterator[Sender]:
    """Dials no address that is not public, follows nobody, and keeps no cookies."""
    allow_private: bool = settings.WEBHOOKS_ALLOW_PRIVATE
    connector = aiohttp.TCPConnector(
        limit=connections,
        socket_factory=make_socket_factory(allow_private),
        # Names are looked up beside each other: of the system's own look-ups libuv has two under way at once.
        resolver=aiohttp.AsyncResolver(),
    )
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=time_out),
        headers=HEADERS,
        auto_decompress=False,
    ) as client:
        yield Sender(client, allow_private, now)


async def send_delivery(sender: Sender, claimed: LeasedDelivery) -> Outcome:
    """Any status is an answer; a redirect is one that is no 2xx, since a receiver could point us inside."""
    started_at, begun = sender.now(), time.monotonic()

    def outcome(**found: Any) -> Outcome:
        return Outcome(claimed, started_at, round((time.monotonic() - begun) * 1000), **found)

    if claimed.poisoned:
        return outcome(error=POISONED_REASON, refused=True)
    headers = sign_headers(claimed, int(started_at.timestamp()))
    try:
        # It was when it was registered; what is let through may be less by now.
        validate_url_cached(claimed.url, sender.allow_private)
        url = URL(claimed.url, encoded=True)
        async with sender.client.post(url, data=claimed.body, headers=headers, allow_redirects=False) as response:
            answer = await read_beginning(response.content)
            retry_after = parse_retry_after(response.headers.get("Retry-After", ""), sender.now())
            return outcome(status=response.status, answer=answer, retry_after=retry_after)
    # What a receiver can make a connection fail with has no end; what fails is tried again.
    except Exception as error:
        cause = getattr(error, "os_error", error)
        return outcome(error=describe_error(cause, error), refused=isinstance(cause, ForbiddenAddress))


def sign_headers(claimed: LeasedDelivery, timestamp: int) -> dict[str, str]:
    """The headers (specification, Section 6)."""
    made = signature(claimed.form, claimed.secret, timestamp, claimed.body)
    return {EVENT: claimed.kind, TIMESTAMP: str(timestamp), SIGNATURE: made}


async def read_beginning(content: aiohttp.StreamReader) -> bytes:
    """As much of the answer as is kept; the rest is not waited for."""
    read = bytearray()
    while len(read) < MAX_ANSWER_BYTES and (chunk := await content.read(MAX_ANSWER_BYTES - len(read))):
        read += chunk
    return bytes(read)


def parse_retry_after(retry_after: str, now: datetime) -> float | None:
    """From the header, a number or a date (RFC 9110, 10.2.3); None where it is neither."""
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
    return next(words for kind, words in ERROR_MESSAGES if any(isinstance(error, kind) for error in errors))
