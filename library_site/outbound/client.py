"""A client for requests to servers that may be hostile: it bounds the time, and what is read of an answer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from library_site.outbound.addresses import make_socket_factory

# The most answers before the final one, such as `100 Continue` (RFC 9110, 15.2).
MAX_INTERIM_ANSWERS = 10
# The bytes that are parsed without a look at these limits.
READ_SIZE = 4096
# No compression: what is read of an answer has a limit, and nothing grows when it is unpacked.
HEADERS = {"User-Agent": "Library-API", "Accept-Encoding": "identity"}


class EndlessHead(Exception):
    """The server sent as much as it may, or MAX_INTERIM_ANSWERS, but no final status with all its headers."""


class BoundedResponseHandler(ResponseHandler):
    """aiohttp's protocol of a connection, which parses no more of an answer than `max_traffic` bytes.

    aiohttp limits headers and the body that waits to be read. But it parses whatever else arrives, without giving the
    loop back: interim answers, extensions of chunks, empty lines, and answers that nobody requested.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_traffic: int) -> None:
        super().__init__(loop)
        self.max_traffic = max_traffic
        self.start_answer()

    def start_answer(self) -> None:
        self.bytes_left, self.interim_answers_left = self.max_traffic, MAX_INTERIM_ANSWERS
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
        for start in range(0, len(data), READ_SIZE):
            self.receive_part(data[start : start + READ_SIZE])

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
async def open_client(
    connections: int, time_out: float, max_traffic: int, allow_private: bool, headers: Mapping[str, str]
) -> AsyncIterator[aiohttp.ClientSession]:
    """Connects to public addresses only, unless private ones are allowed, and stores no cookies.

    `time_out` has the seconds of a whole request; `max_traffic` is how many bytes of an answer are parsed. Its callers
    follow no redirects: a server could point us inside.
    """
    # Resolves many names at the same time: libuv runs only two of the system's own look-ups at once.
    resolver = aiohttp.AsyncResolver()
    connector = aiohttp.TCPConnector(
        limit=connections, socket_factory=make_socket_factory(allow_private), resolver=resolver
    )
    # aiohttp has no public way to choose the protocol.
    factory = partial(BoundedResponseHandler, asyncio.get_running_loop(), max_traffic)
    connector._factory = factory  # type: ignore[assignment]  # its subclass
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=time_out),
        headers={**HEADERS, **headers},
        auto_decompress=False,
    )
    try:
        async with session:
            yield session
    finally:
        # The session closes only a resolver of its own. Each has a thread.
        await resolver.close()


async def read_beginning(content: aiohttp.StreamReader, size: int) -> bytes:
    """Returns at most so many bytes of a body; the rest is not awaited."""
    beginning = bytearray()
    while len(beginning) < size and (chunk := await content.read(size - len(beginning))):
        beginning += chunk
    return bytes(beginning)
