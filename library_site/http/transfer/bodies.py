"""Reads request bodies in full, within their limits."""

import time
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

from library_site.cached_settings import cached_settings
from library_site.http.api_errors import APIError
from library_site.http.callers import get_client_network
from library_site.http.request_log import VERSION_KEY
from library_site.http.transfer.body_semaphore import BODY_RETRY_AFTER, get_body_semaphore

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream

# Bodies are read in parts, because the server keeps a second copy of each part in memory.
PART_SIZE = 64 * 1024
# Seconds in which each part must arrive.
PART_SECONDS = 20
# A client that is still sending would not receive the response, so up to this size the rest of a body is discarded.
MAX_DISCARDED = 64 * 1024 * 1024


class BodyTooSlow(APIError):
    """A body arrives at less than PART_SIZE in PART_SECONDS."""

    status_code = 503
    default_detail = "The body arrives too slowly, try again later"
    headers: ClassVar = {"Retry-After": BODY_RETRY_AFTER}


def get_body_limit(environ: Mapping[str, Any]) -> int:
    """Returns how many bytes the body of a request may have; its version may set another limit than the default."""
    choice = environ.get(VERSION_KEY)
    own_limit = choice and choice.version.body_limits.get(choice.path.removesuffix("/"))
    return int(own_limit or cached_settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


def read_input(environ: dict[str, Any], limit: int) -> BytesIO:
    """Returns the body. If it is too large, the result has one byte more than the limit.

    A body without a length (chunked, or HTTP/2) gets a Content-Length, which Django needs. Raises TooManyBodies,
    BodyTooSlow.
    """
    # After Content-Length a server need not say that the body ends (PEP 3333).
    body, has_end = BytesIO(), environ.get("wsgi.input_terminated") or "HTTP_TRANSFER_ENCODING" in environ
    with get_body_semaphore().hold(get_client_network(environ)):
        stream, length = environ["wsgi.input"], int(environ.get("CONTENT_LENGTH") or (MAX_DISCARDED if has_end else 0))
        body.writelines(iter_parts(stream, min(limit + 1, length)))
        if body.tell() > limit:
            # The rest is discarded.
            for _ in iter_parts(stream, min(MAX_DISCARDED, length - body.tell())):
                pass
    body.seek(0)
    environ["wsgi.input"] = body
    environ["CONTENT_LENGTH"] = environ.get("CONTENT_LENGTH") or str(body.getbuffer().nbytes)
    return body


def iter_parts(stream: "InputStream", size: int) -> Iterator[bytes]:
    """Reads up to `size` bytes. A part that is shorter than requested is the last one. Raises BodyTooSlow."""
    while size > 0:
        began_at = time.monotonic()
        length = min(PART_SIZE, size)
        part = stream.read(length)
        yield part
        size -= length
        if len(part) < length:
            return
        if time.monotonic() > began_at + PART_SECONDS:
            raise BodyTooSlow
