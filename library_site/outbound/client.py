"""A client for requests to servers that may be hostile: it limits the time, and how much of a response it reads."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage

from library_site.outbound.addresses import make_socket_factory

# The largest number of interim responses, such as `100 Continue` (RFC 9110, 15.2).
MAX_INTERIM_RESPONSES = 10
# How many bytes are parsed between two checks of the limits.
READ_SIZE = 4096
# No compression: a decompressed body could exceed the limits.
HEADERS = {"User-Agent": "Library-API", "Accept-Encoding": "identity"}


class EndlessHead(Exception):
    """The server reached `max_traffic` or MAX_INTERIM_ANSWERS before a final status with all its headers."""


class BoundedResponseHandler(ResponseHandler):
    """aiohttp's connection protocol, but it parses at most `max_traffic` bytes of a response.

    aiohttp limits the headers and the unread body. But it parses everything else without returning to the event loop:
    interim responses, chunk extensions, empty lines, and responses without a request.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, max_traffic: int) -> None:
        super().__init__(loop)
        self.max_traffic = max_traffic
        self.start_answer()

    def start_answer(self) -> None:
        self.bytes_left, self.interim_responses_left = self.max_traffic, MAX_INTERIM_RESPONSES
        # The body of the final response, set when its headers are parsed.
        self.final_body: aiohttp.StreamReader | None = None

    def set_response_params(self, **parameters: Any) -> None:
        """aiohttp calls it before each request."""
        self.start_answer()
        super().set_response_params(**parameters)

    def data_received(self, data: bytes) -> None:
        """The event loop calls it with new data; aiohttp calls it with no data to resume parsing."""
        if not data:
            super().data_received(data)
        for start in range(0, len(data), READ_SIZE):
            self.receive_part(data[start : start + READ_SIZE])

    def receive_part(self, part: bytes) -> None:
        self.bytes_left -= len(part)
        is_endless = self.bytes_left < 0 or self.interim_responses_left < 0
        if self.final_body is None and is_endless:
            self.abort()
            self.set_exception(EndlessHead())
        elif self.final_body is not None and self.final_body.is_eof():
            # The response has ended: further data belongs to no request.
            self.abort()
        elif self.final_body is not None and is_endless:
            # The stored part of the body is complete. The connection is closed when the body ends.
            self.force_close()
            self.final_body.feed_eof()
        else:
            super().data_received(part)

    def feed_data(self, data: tuple[RawResponseMessage, aiohttp.StreamReader], size: int = 0) -> None:
        """aiohttp calls it with each response when its headers are parsed."""
        message, body = data
        if message.code < 200:
            self.interim_responses_left -= 1
        elif self.final_body is None:
            self.final_body = body
        super().feed_data(data, size)


@asynccontextmanager
async def open_client(
    connections: int, time_out: float, max_traffic: int, allow_private: bool, headers: Mapping[str, str]
) -> AsyncIterator[aiohttp.ClientSession]:
    """Returns a client that connects only to public addresses, unless private ones are allowed, and stores no cookies.

    `time_out` is for the whole request, in seconds; `max_traffic` limits the parsed bytes of a response. Callers must
    not follow redirects: they could lead into the internal network.
    """
    # Resolves many names concurrently: libuv runs only two lookups of the system at a time.
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
        # The session does not close a resolver that it did not create, and each resolver has a thread.
        await resolver.close()


async def read_beginning(content: aiohttp.StreamReader, size: int) -> bytes:
    """Returns the first bytes of a body, and does not wait for the rest."""
    beginning = bytearray()
    while len(beginning) < size and (chunk := await content.read(size - len(beginning))):
        beginning += chunk
    return bytes(beginning)
