"""Compresses the responses of the API with gzip (RFC 1952), with the setting GZIP.

A compressed response is another representation of the resource, so it has another ETag (RFC 9110, 8.8.3.3): it ends in
`-gzip`. The library accepts it wherever it accepts the original ETag. Responses with `no-store` are not compressed:
they can have secrets, and the compressed length would reveal something about them.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from library_site.http.request_log import ClosingBody, Headers

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# A shorter body is not compressed: the header of gzip would cost more than the compression saves.
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
            # The response to HEAD has no body.
            return list(compress(body)) if any(body) else body
        close: Callable[[], None] = getattr(body, "close", lambda: None)
        return ClosingBody(compress(body), close)

    return wrapper


def accepts_gzip(header: str) -> bool:
    """Tells whether Accept-Encoding names gzip with a weight above 0 (RFC 9110, 12.5.3). `*` does not count."""
    for item in header.lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "").removeprefix("q=").strip("0.") != "" if weight else True
    return False


def is_compressible(status: str, headers: Mapping[str, str]) -> bool:
    """The names in `headers` are lower case. A streamed response has no Content-Length."""
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


def compress(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the compressed bytes of each part at once, without a buffer."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    for part in body:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
