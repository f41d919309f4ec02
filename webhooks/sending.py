"""One request to a receiver, and what came of it."""

import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
from django.conf import settings
from yarl import URL

from webhooks.addresses import RefusedAddress, socket_factory
from webhooks.delivery import Claimed, Outcome
from webhooks.models import LARGEST_ANSWER
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP, signature

# Seconds for all of it: connecting, headers and body.
TIME_OUT = 10
# The words for those who own the endpoint; the first that fits.
WORDS: list[tuple[type[Exception], str]] = [
    (TimeoutError, "No whole answer came in time."),
    (RefusedAddress, "The address is not a public one."),
    (aiohttp.ClientConnectorDNSError, "The host is not known."),
    (ssl.SSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientSSLError, "The certificate or the TLS connection is not good."),
    (aiohttp.ClientConnectorError, "Nobody answers at the address."),
    (Exception, "The connection broke, or the answer was no HTTP."),
]


class Clock:
    """The database's time, which all workers share, carried on by this process's own pace."""

    def __init__(self, now: datetime) -> None:
        self.set(now)

    def set(self, now: datetime) -> None:
        self.behind = now.timestamp() - time.monotonic()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.behind + time.monotonic(), UTC)


def session(connections: int, time_out: float = TIME_OUT) -> aiohttp.ClientSession:
    """Dials no address that is not public, follows nobody, and keeps no cookies."""
    factory = socket_factory(settings.WEBHOOKS_ALLOW_PRIVATE)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, socket_factory=factory),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=time_out),
        headers={"Content-Type": "application/json", "User-Agent": "Library-API"},
        auto_decompress=False,
    )


async def send(client: aiohttp.ClientSession, claimed: Claimed, now: Callable[[], datetime]) -> Outcome:
    """Any status is an answer; a redirect is one that is no 2xx, since a receiver could point us inside."""
    started_at, begun = now(), time.monotonic()

    def outcome(**found: object) -> Outcome:
        return Outcome(claimed, started_at, round((time.monotonic() - begun) * 1000), **found)  # type: ignore[arg-type]  # its own names

    try:
        url = URL(claimed.url, encoded=True)
        headers = signed(claimed, int(started_at.timestamp()))
        async with client.post(url, data=claimed.body, headers=headers, allow_redirects=False) as response:
            answer = await beginning(response.content)
            retry_after = seconds(response.headers.get("Retry-After", ""), now())
            return outcome(status=response.status, answer=answer, retry_after=retry_after)
    # What a receiver can make a connection fail with has no end; what fails is tried again.
    except Exception as error:
        cause = getattr(error, "os_error", error)
        return outcome(error=words(cause, error), refused=isinstance(cause, RefusedAddress))


def signed(claimed: Claimed, timestamp: int) -> dict[str, str]:
    """The headers (specification, Section 6)."""
    made = signature(claimed.form, claimed.secret, timestamp, claimed.body)
    return {EVENT: claimed.kind, TIMESTAMP: str(timestamp), SIGNATURE: made}


async def beginning(content: aiohttp.StreamReader) -> bytes:
    """As much of the answer as is kept; the rest is not waited for."""
    read = bytearray()
    while len(read) < LARGEST_ANSWER and (chunk := await content.read(LARGEST_ANSWER - len(read))):
        read += chunk
    return bytes(read)


def seconds(retry_after: str, now: datetime) -> float | None:
    """From the header, a number or a date (RFC 9110, 10.2.3); None where it is neither."""
    if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 10:
        return int(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now.timestamp()
    except (ValueError, OverflowError):
        return None


def words(*errors: BaseException) -> str:
    return next(words for kind, words in WORDS if any(isinstance(error, kind) for error in errors))
