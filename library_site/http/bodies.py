"""WSGI layers for request bodies: they read a body in full, and simplify its Content-Type."""

import gc
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

from library_site.cached_settings import cached_settings
from library_site.http.refusals import Refusal
from library_site.http.request_log import call_on_close
from library_site.http.slots import get_body_slots

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

# The server keeps a second copy of what it is asked for at once.
PART_SIZE = 64 * 1024
# After this many bytes of bodies a process collects its garbage.
COLLECTION_SIZE = 4 * 1024 * 1024
# The environ's key of why a body was not read.
BODY_REFUSAL_KEY = "library.body_refusal"
MULTIPART_FORM = re.compile(r"multipart/form-data; ?boundary=[\w'()+,./:=?-]+")


Body = TypeVar("Body")


def normalize_content_type(application: "WSGIApplication") -> "WSGIApplication":
    """Keeps only the media type of a Content-Type: Django fails on unusual parameters before it can answer."""

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        content_type = environ.get("CONTENT_TYPE")
        if content_type and not MULTIPART_FORM.fullmatch(content_type):
            environ["CONTENT_TYPE"] = content_type.partition(";")[0].strip() or "unknown"
        return application(environ, start_response)

    return wrapper


def buffer_body(application: "WSGIApplication") -> "WSGIApplication":
    """Reads the request body before Django sees the request.

    A body without a length (chunked, or HTTP/2) gets a Content-Length, which Django needs. When Django refuses a
    request without reading its body, the client keeps its connection. `library.cut_off` marks a body that is shorter
    than its Content-Length.

    Requests, views, serializers and exceptions refer to each other, so what they keep of a body waits for the garbage
    collector. That counts objects, not bytes: here the body is closed after its answer, and its bytes are counted.
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
        body = read_input(environ, partial(read_body, limit=limit)) or BytesIO()
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


def read_input(environ: "WSGIEnvironment", read: Callable[["InputStream"], Body]) -> Body | None:
    """Returns what `read` reads of the body, or None where too many threads read bodies.

    `library.body_refusal` has the reason then, and the rest of the request is answered without its body.
    """
    try:
        with get_body_slots().hold(environ.get("REMOTE_ADDR", "")):
            return read(environ["wsgi.input"])
    except Refusal as refusal:
        environ |= {"wsgi.input": BytesIO(), "CONTENT_LENGTH": "0", BODY_REFUSAL_KEY: refusal}
        return None


def read_body(stream: "InputStream", limit: int) -> BytesIO:
    """Reads a body. One byte more than the limit shows that it is too large; what follows is discarded."""
    body = read_parts(stream, limit + 1)
    if len(body.getvalue()) > limit:
        discard_rest(stream)
    return body


def read_parts(stream: "InputStream", size: int) -> BytesIO:
    """Reads up to `size` bytes. A part that is shorter than requested is the last one."""
    body = BytesIO()
    length = PART_SIZE
    while length == PART_SIZE and body.tell() < size:
        length = body.write(stream.read(min(PART_SIZE, size - body.tell())))
    body.seek(0)
    return body


def discard_rest(body: "InputStream") -> None:
    """Reads up to 64 MiB more: a client that is still sending would not receive the response."""
    for _ in range(64):
        if not body.read(1024 * 1024):
            break
