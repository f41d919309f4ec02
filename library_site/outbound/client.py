"""A client for requests to servers that may be hostile: it limits the time, and how much of a response it reads.

Other clients refuse a whole response because of one odd header. Here its status counts, whatever follows.
"""

import asyncio
import re
import socket
import ssl
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from urllib.parse import SplitResult, urlsplit

import aiodns
from aiohappyeyeballs import start_connection

from library_site.outbound.addresses import AddrInfo, build_socket_factory

# No compression: a decompressed body could exceed the limits.
HEADERS = {"User-Agent": "Library-API", "Accept": "*/*", "Accept-Encoding": "identity"}
STATUS_LINE = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: .*)?\r?\n")
LENGTH = re.compile(r"[0-9]{1,15}")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\r?\n")
SWITCHING_PROTOCOLS, STATUSES_WITHOUT_BODY = 101, {101, 204, 304}
# Loading the authorities takes a while.
build_tls_context = cache(ssl.create_default_context)
# Seconds until the next address of a host is tried as well (RFC 8305), and until an idle connection is closed.
NEXT_ADDRESS_DELAY, IDLE_TIME = 0.25, 15


class ResponseTooLong(Exception):
    """The server sent more than `max_traffic` bytes."""


class InvalidResponse(Exception):
    """The response is not HTTP/1, or it is not clear where it ends."""


@dataclass
class Response:
    """What came of a response; `error` is why it is not whole. The names of the headers are in small letters."""

    status: int = 0
    headers: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    body: bytearray = field(default_factory=bytearray)
    error: Exception | None = None


class Connection(asyncio.Protocol):
    """A connection to a server. While no request uses it, it is in `idle`."""

    def __init__(self, idle: list["Connection"]) -> None:
        self.idle = idle
        self.received = bytearray()
        # How many bytes may come. Between two requests there is nothing to come.
        self.bytes_left = 0
        self.end: Exception | None = None
        self.arrival: asyncio.Future[None] | None = None
        self.idle_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data[: max(0, self.bytes_left)]
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            self.close(ResponseTooLong())
        self.end_wait()

    def connection_lost(self, error: Exception | None) -> None:
        self.close(error)
        self.end_wait()

    def end_wait(self) -> None:
        if self.arrival and not self.arrival.done():
            self.arrival.set_result(None)

    def close(self, reason: Exception | None = None) -> None:
        self.end = self.end or reason or EOFError()
        self.transport.abort()
        if self in self.idle:
            self.idle.remove(self)

    async def exchange(self, request: bytes, max_traffic: int, response: Response) -> None:
        """Sends a request and reads its response. Raises what ends the response early."""
        if self.idle_timer:
            self.idle_timer.cancel()
        self.bytes_left = max_traffic
        is_reusable = False
        try:
            self.transport.write(request)
            is_reusable = await self.read_response(response) and not self.received and not self.end
        finally:
            if not is_reusable:
                self.close()
        self.bytes_left = 0
        self.idle_timer = asyncio.get_running_loop().call_later(IDLE_TIME, self.close)
        self.idle.append(self)

    async def read_response(self, response: Response) -> bool:
        """Returns whether the server can be expected to answer another request."""
        while not response.status:
            status_line = STATUS_LINE.fullmatch(await self.read_line())
            if not status_line:
                raise InvalidResponse
            minor_version, status = map(int, status_line.groups())
            # Others are interim responses, such as `100 Continue` (RFC 9110, 15.2).
            if status >= 200 or status == SWITCHING_PROTOCOLS:
                response.status = status
            response.headers.clear()
            while line := (await self.read_line()).strip():
                name, _, value = line.decode("latin-1").partition(":")
                response.headers[name.strip().lower()].append(value.strip())
        is_clear = await self.read_body(response)
        return is_clear and minor_version > 0 and "close" not in ",".join(response.headers["connection"]).lower()

    async def read_body(self, response: Response) -> bool:
        """Returns whether it is clear that no more follows. Raises InvalidResponse if it is not clear what does."""
        codings, lengths = response.headers["transfer-encoding"], response.headers["content-length"]
        if response.status in STATUSES_WITHOUT_BODY:
            return not codings and lengths in ([], ["0"])
        if not codings and not lengths:
            await self.read_to_end(response.body)
        elif not lengths and [coding.lower() for coding in codings] == ["chunked"]:
            await self.read_chunks(response.body)
        elif not codings and len(lengths) == 1 and LENGTH.fullmatch(lengths[0]):
            await self.read(response.body, int(lengths[0]))
        else:
            raise InvalidResponse
        return True

    async def read_chunks(self, body: bytearray) -> None:
        size = -1
        while size:
            line = CHUNK_SIZE.fullmatch(await self.read_line())
            if not line:
                raise InvalidResponse
            size = int(line[1], 16)
            await self.read(body, size)
            # A chunk ends with an empty line, the last one has trailers before it.
            while (await self.read_line()).strip():
                if size:
                    raise InvalidResponse

    async def read_to_end(self, body: bytearray) -> None:
        while True:
            try:
                await self.read(body, 1)
            except EOFError:
                return

    async def read(self, body: bytearray, size: int) -> None:
        while size:
            if not self.received:
                await self.wait()
            part = self.received[:size]
            del self.received[:size]
            body += part
            size -= len(part)

    async def read_line(self) -> bytes:
        length = 0
        while not (end := self.received.find(b"\n", length) + 1):
            length = len(self.received)
            await self.wait()
        line = bytearray()
        await self.read(line, end)
        return bytes(line)

    async def wait(self) -> None:
        """Waits until more has come. Raises what ended the connection."""
        if self.end:
            raise self.end
        self.arrival = asyncio.get_running_loop().create_future()
        await self.arrival


class Client:
    """Connects only to public addresses, unless private ones are allowed. It follows no redirect: that could lead into
    the internal network.

    `time_out` is for a whole request, in seconds; `max_traffic` is the largest response, in bytes with its headers.
    """

    def __init__(self, time_out: float, max_traffic: int, allow_private: bool, headers: Mapping[str, str]) -> None:
        self.time_out, self.max_traffic = time_out, max_traffic
        self.headers = {**HEADERS, **headers}
        self.socket_factory = build_socket_factory(allow_private)
        # Resolves many names concurrently: libuv runs only two lookups of the system at a time.
        self.resolver = aiodns.DNSResolver()
        self.idle: defaultdict[tuple[str, str], list[Connection]] = defaultdict(list)

    async def aclose(self) -> None:
        for connection in [each for idle in self.idle.values() for each in idle]:
            connection.close()
        # A resolver has a thread.
        await self.resolver.close()

    async def request(self, method: str, url: str, headers: Mapping[str, str] = {}, body: bytes = b"") -> Response:
        """Returns a response that has a status, whole or not; raises what comes before. The URL is printable ASCII."""
        parts, response = urlsplit(url), Response()
        fields = {"Host": parts.netloc, **self.headers, **headers, "Content-Length": str(len(body))}
        lines = [f"{method} {parts._replace(scheme='', netloc='', path=parts.path or '/').geturl()} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        request = "\r\n".join([*lines, "\r\n"]).encode("ascii") + body
        try:
            async with asyncio.timeout(self.time_out):
                await self.exchange(parts, request, response)
        # A server can cause any exception.
        except Exception as error:
            if not response.status:
                raise
            response.error = error
        return response

    async def exchange(self, url: SplitResult, request: bytes, response: Response) -> None:
        idle = self.idle[url.scheme, url.netloc]
        if idle:
            connection = idle.pop()
            try:
                return await connection.exchange(request, self.max_traffic, response)
            except (EOFError, OSError):
                # Without a byte of a response, the server had closed the connection before the request came.
                if connection.bytes_left < self.max_traffic:
                    raise
        connection = await self.connect(url, idle)
        return await connection.exchange(request, self.max_traffic, response)

    async def connect(self, url: SplitResult, idle: list[Connection]) -> Connection:
        host, is_tls = str(url.hostname), url.scheme == "https"
        addresses = await self.resolve(host, url.port or (443 if is_tls else 80))
        new_socket = await start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_DELAY, socket_factory=self.socket_factory
        )
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                partial(Connection, idle),
                sock=new_socket,
                ssl=build_tls_context() if is_tls else None,
                server_hostname=host if is_tls else None,
            )
        except BaseException:
            new_socket.close()
            raise
        return connection

    async def resolve(self, host: str, port: int) -> list[AddrInfo]:
        found = await self.resolver.getaddrinfo(host, port=port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        return [
            (node.family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (node.addr[0].decode(), *node.addr[1:]))
            for node in found.nodes
        ]
