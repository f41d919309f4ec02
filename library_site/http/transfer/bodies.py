"""WSGI layers for request bodies: they read a body in full, and simplify its Content-Type."""

import gc
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

from library_site.cached_settings import cached_settings
from library_site.http.api_errors import APIError
from library_site.http.callers import get_client_network
from library_site.http.request_log import call_on_close
from library_site.http.transfer.body_semaphore import BODY_RETRY_AFTER, get_body_semaphore

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

# Bodies are read in parts, because the server keeps a second copy of each part in memory.
PART_SIZE = 64 * 1024
# Seconds in which each part must arrive.
PART_SECONDS = 20
# A process runs the garbage collector after this many bytes of bodies.
COLLECTION_SIZE = 4 * 1024 * 1024
# Key of the environ for the error, if the body was not read.
BODY_REFUSAL_KEY = "library.body_refusal"
MULTIPART_FORM = re.compile(r"multipart/form-data; ?boundary=[\w'()+,./:=?-]+")


class BodyTooSlow(APIError):
    """A body arrives at less than PART_SIZE in PART_SECONDS."""

    status = 503
    message = "The body arrives too slowly, try again later"
    headers: ClassVar = {"Retry-After": BODY_RETRY_AFTER}


def normalize_content_type(application: "WSGIApplication") -> "WSGIApplication":
    """Keeps only the media type of a Content-Type: Django fails on unusual parameters before it can send a response."""

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        content_type = environ.get("CONTENT_TYPE")
        if content_type and not MULTIPART_FORM.fullmatch(content_type):
            environ["CONTENT_TYPE"] = content_type.partition(";")[0].strip() or "unknown"
        return application(environ, start_response)

    return wrapper


def buffer_body(application: "WSGIApplication") -> "WSGIApplication":
    """Reads the request body before Django sees the request.

    A body without a length (chunked, or HTTP/2) gets a Content-Length, which Django needs. When Django rejects a
    request without reading its body, the client keeps its connection. `library.cut_off` marks a body that is shorter
    than its Content-Length.

    Requests, views, serializers and exceptions refer to each other, so only the garbage collector frees their copies of
    a body. It counts objects, not bytes. So this layer closes the body after the response, and counts the bytes.
    """
    uncollected_size = 0

    def release(body: BytesIO, size: int) -> None:
        nonlocal uncollected_size
        body.close()
        uncollected_size += size
        if uncollected_size >= COLLECTION_SIZE:
            uncollected_size = 0
            gc.collect()

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in ("POST", "PUT", "PATCH"):
            return application(environ, start_response)
        limit = get_body_limit(environ)
        body = read_input(environ, limit)
        size = len(body.getvalue())
        length = environ.get("CONTENT_LENGTH") or str(size)
        environ |= {"wsgi.input": body, "CONTENT_LENGTH": length}
        environ["library.cut_off"] = size < int(length) <= limit
        return call_on_close(application(environ, start_response), partial(release, body, size))

    return wrapper


def get_body_limit(environ: Mapping[str, Any]) -> int:
    """Returns how many bytes the body of a request may have; its version may set another limit than the default."""
    limit: int = environ.get("library.body_limit") or cached_settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return limit


def read_input(environ: "WSGIEnvironment", limit: int) -> BytesIO:
    """Returns the body. If it is too large, the result has one byte more than the limit.

    If it is rejected, `library.body_refusal` has the error, and the other layers get a request without a body.
    """
    body = BytesIO()
    try:
        with get_body_semaphore().hold(get_client_network(environ)):
            read_body(environ["wsgi.input"], limit, body)
    except APIError as refusal:
        body.close()
        body = BytesIO()
        environ |= {"wsgi.input": body, "CONTENT_LENGTH": "0", BODY_REFUSAL_KEY: refusal}
    body.seek(0)
    return body


def read_body(stream: "InputStream", limit: int, body: BytesIO) -> None:
    """Reads a body, or one byte more than the limit if it is larger, and discards the rest. Raises BodyTooSlow."""
    body.writelines(iter_parts(stream, limit + 1))
    if body.tell() > limit:
        # It discards up to 64 MiB: a client that is still sending would not receive the response.
        for _ in iter_parts(stream, 64 * 1024 * 1024):
            pass


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
