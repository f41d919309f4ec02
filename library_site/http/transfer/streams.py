"""Bounds the number of streamed responses: each occupies a thread of the server until its client has read it.

A client that stops reading occupies it for ever. So streamed responses get only a part of the threads. The others stay
free for all other responses, which the server sends without a thread.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from threading import Lock

from django.conf import settings

from library_site.http.api_errors import APIError

# Seconds after which a client whose request was rejected can try again.
STREAM_RETRY_AFTER = "5"


class TooManyStreams(APIError):
    """This process sends the maximum number of files already."""

    status = 503
    message = "The library sends many files already, try again later"
    headers = {"Retry-After": STREAM_RETRY_AFTER}


class TooManyStreamsOfAddress(APIError):
    """This process sends the maximum number of files to the address already."""

    status = 429
    message = "The library sends several files to this address already, try again when one is complete"
    headers = {"Retry-After": STREAM_RETRY_AFTER}


class StreamLimit:
    """Counts the streams of this process: `total` of all addresses, and `per_address` of each."""

    def __init__(self, total: int, per_address: int) -> None:
        self.total, self.per_address = total, per_address
        self.lock = Lock()
        self.streams: Counter[str] = Counter()

    def open_stream(self, address: str, pieces: Iterable[bytes]) -> "Stream":
        """Counts a stream until it is closed. Raises TooManyStreams, TooManyStreamsOfAddress."""
        with self.lock:
            if self.streams[address] >= self.per_address:
                raise TooManyStreamsOfAddress
            if self.streams.total() >= self.total:
                raise TooManyStreams
            self.streams[address] += 1
        return Stream(self, address, pieces)

    def release(self, address: str) -> None:
        with self.lock:
            self.streams[address] -= 1
            # This drops the addresses that have no stream, to save memory.
            self.streams = +self.streams


class Stream:
    """The parts of a streamed response. The server closes it, also if the client has disconnected (PEP 3333)."""

    def __init__(self, limit: StreamLimit, address: str, pieces: Iterable[bytes]) -> None:
        self.limit, self.address, self.pieces = limit, address, pieces
        self.is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    def close(self) -> None:
        """Can be called more than once."""
        with self.limit.lock:
            was_open, self.is_open = self.is_open, False
        if was_open:
            self.limit.release(self.address)


@cache
def get_stream_limit() -> StreamLimit:
    """Returns the limits of this process: half of the threads, and a quarter of them for one address; at least one."""
    return StreamLimit(max(1, settings.WEB_THREADS // 2), max(1, settings.WEB_THREADS // 4))
