"""Compresses the responses of the API with gzip (RFC 1952), with the setting GZIP.

A compressed answer is another representation of the resource, so its ETag is another one (RFC 9110, 8.8.3.3): it ends
in `-gzip`, and is accepted wherever the ETag itself is. Answers that no cache may store can have secrets, whose length
would show through compression; they are left as they are.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from library_site.http.request_log import Headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Bytes below which the header of gzip and a packet cost more than is saved.
MIN_LENGTH = 1024
LEVEL = 5
# zlib writes the format of gzip with 16 added to the size of its window.
GZIP_WINDOW = 16 + zlib.MAX_WBITS
SUFFIX = '-gzip"'
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


def compress_responses(application: "WSGIApplication") -> "WSGIApplication":
    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith("/api/"):
            return application(environ, start_response)
        conditions = {name: environ[name] for name in CONDITIONS if name in environ}
        environ |= {name: value.replace(SUFFIX, '"') for name, value in conditions.items()}
        may_compress = accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
        is_compressed = False

        def start_compressed_response(status: str, headers: Headers, *arguments: Any) -> Any:
            nonlocal is_compressed
            values = {name.lower(): value for name, value in headers}
            is_compressed = may_compress and is_compressible(status, values)
            was_compressed = status.startswith("304") and any(SUFFIX in value for value in conditions.values())
            changed = [(name, change_value(name, value, is_compressed or was_compressed)) for name, value in headers]
            if is_compressed:
                changed = [(name, value) for name, value in changed if name.lower() != "content-length"]
                changed.append(("Content-Encoding", "gzip"))
            return start_response(status, [*changed, ("Vary", "Accept-Encoding")], *arguments)

        body = application(environ, start_compressed_response)
        if not is_compressed:
            return body
        if isinstance(body, list):
            # The server may ask for the head alone.
            return list(compress(body)) if any(body) else body
        return CompressedBody(body)

    return wrapper


def accepts_gzip(header: str) -> bool:
    """Whether Accept-Encoding names gzip, and not to refuse it (RFC 9110, 12.5.3). `*` is no reason to compress."""
    for item in header.lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "").removeprefix("q=").strip("0.") != "" if weight else True
    return False


def is_compressible(status: str, headers: Mapping[str, str]) -> bool:
    """`headers` have names in small letters. What is sent piece by piece has no length."""
    return (
        status.startswith("200")
        and "content-encoding" not in headers
        and "no-store" not in headers.get("cache-control", "")
        and int(headers.get("content-length", MIN_LENGTH)) >= MIN_LENGTH
    )


def change_value(name: str, value: str, is_compressed: bool) -> str:
    if is_compressed and name.lower() == "etag" and value.endswith('"'):
        return value[:-1] + SUFFIX
    return value


class CompressedBody:
    """Is closed by the server, also before its first piece is asked for (PEP 3333)."""

    def __init__(self, body: Iterable[bytes]) -> None:
        self.body = body

    def __iter__(self) -> Iterator[bytes]:
        return compress(self.body)

    def close(self) -> None:
        getattr(self.body, "close", lambda: None)()


def compress(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yields each piece at once."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    for part in body:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
