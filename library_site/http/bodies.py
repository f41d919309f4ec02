"""WSGI layers for request bodies: they read a body in full, and simplify its Content-Type."""

import re
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

MULTIPART_FORM = re.compile(r"multipart/form-data; ?boundary=[\w'()+,./:=?-]+")


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
    """

    def wrapper(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("POST", "PUT", "PATCH"):
            limit = environ.setdefault("library.body_limit", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            # One byte more than the limit shows that the body is too large.
            body = environ["wsgi.input"].read(limit + 1)
            if len(body) > limit:
                discard_rest(environ["wsgi.input"])
            length = environ.get("CONTENT_LENGTH") or str(len(body))
            environ |= {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": length}
            environ["library.cut_off"] = len(body) < int(length) <= limit
        return application(environ, start_response)

    return wrapper


def discard_rest(body: "InputStream") -> None:
    """Reads up to 64 MiB more: a client that is still sending would not receive the response."""
    for _ in range(64):
        if not body.read(1024 * 1024):
            break
