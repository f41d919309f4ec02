"""Bounds the number of streamed responses: each occupies a thread of the server until its client has read it.

A client that stops reading occupies it for ever. So streamed responses get only a part of the threads. The others stay
free for all other responses, which the server sends without a thread.
"""

from collections import Counter
from contextlib import ExitStack
from functools import cache
from threading import Lock

from django.conf import settings

from library_site.http.api_errors import APIError

# Seconds after which a client whose request was rejected can try again.
STREAM_RETRY_AFTER = "5"


class TooManyStreams(APIError):
    """This process sends the maximum number of files already."""

    status_code = 503
    default_detail = "The library sends many files already, try again later"
    headers = {"Retry-After": STREAM_RETRY_AFTER}


class TooManyStreamsOfAddress(APIError):
    """This process sends the maximum number of files to the address already."""

    status_code = 429
    default_detail = "The library sends several files to this address already, try again when one is complete"
    headers = {"Retry-After": STREAM_RETRY_AFTER}


class StreamLimit:
    """Counts the streams of this process: `total` of all addresses, and `per_address` of each."""

    def __init__(self, total: int, per_address: int) -> None:
        self.total, self.per_address = total, per_address
        self.lock = Lock()
        self.streams: Counter[str] = Counter()

    def open_stream(self, address: str) -> ExitStack:
        """Counts a stream until the result is first closed. Raises TooManyStreams, TooManyStreamsOfAddress."""
        with self.lock:
            if self.streams[address] >= self.per_address:
                raise TooManyStreamsOfAddress
            if self.streams.total() >= self.total:
                raise TooManyStreams
            self.streams[address] += 1
        stream = ExitStack()
        stream.callback(self.release, address)
        return stream

    def release(self, address: str) -> None:
        with self.lock:
            self.streams[address] -= 1
            # This drops the addresses that have no stream, to save memory.
            self.streams = +self.streams


@cache
def get_stream_limit() -> StreamLimit:
    """Returns the limits of this process: half of the threads, and a quarter of them for one address; at least one."""
    return StreamLimit(max(1, settings.WEB_THREADS // 2), max(1, settings.WEB_THREADS // 4))
