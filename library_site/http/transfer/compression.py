"""Compresses the responses of the API with gzip (RFC 1952), with the setting GZIP.

A compressed response is another representation of the resource, so it has another ETag (RFC 9110, 8.8.3.3): it ends in
`-gzip`. The library accepts it wherever it accepts the original ETag. Responses with `no-store` are not compressed:
they can have secrets, and the compressed length would reveal something about them.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

from library_site.http.caching import add_vary

# A shorter body is not compressed: the header of gzip would cost more than the compression saves.
MIN_LENGTH = 1024
LEVEL = 5
# zlib writes the format of gzip with 16 added to the size of its window.
GZIP_WINDOW = 16 + zlib.MAX_WBITS
SUFFIX = '-gzip"'
CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")


def accept_compressed_etags(environ: dict[str, Any]) -> dict[str, str]:
    """Removes the suffix from the conditions of a request, and returns them as they were."""
    conditions = {name: environ[name] for name in CONDITIONS if name in environ}
    environ |= {name: value.replace(SUFFIX, '"') for name, value in conditions.items()}
    return conditions


def prepare_headers(
    environ: Mapping[str, Any], status: int, headers: MutableMapping[str, str], conditions: Mapping[str, str]
) -> bool:
    """Tells whether to compress the body of a response, and changes its headers accordingly.

    `conditions` are those that the client sent.
    """
    may_compress = accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
    is_compressed = may_compress and is_compressible(status, headers)
    was_compressed = status == HTTPStatus.NOT_MODIFIED and any(SUFFIX in value for value in conditions.values())
    if (is_compressed or was_compressed) and "ETag" in headers:
        headers["ETag"] = headers["ETag"].removesuffix('"') + SUFFIX
    if is_compressed:
        headers.pop("Content-Length", None)
        headers["Content-Encoding"] = "gzip"
    add_vary(headers, ["Accept-Encoding"])
    return is_compressed


def accepts_gzip(header: str) -> bool:
    """Tells whether Accept-Encoding names gzip with a weight above 0 (RFC 9110, 12.5.3). `*` does not count."""
    for item in header.lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "").removeprefix("q=").strip("0.") != "" if weight else True
    return False


def is_compressible(status: int, headers: Mapping[str, str]) -> bool:
    """A streamed response has no Content-Length."""
    return (
        status == HTTPStatus.OK
        and "Content-Encoding" not in headers
        and "no-store" not in headers.get("Cache-Control", "")
        and int(headers.get("Content-Length", MIN_LENGTH)) >= MIN_LENGTH
    )


def compress(body: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the compressed bytes of each part at once, without a buffer."""
    compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP_WINDOW)
    for part in body:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
