"""The body of an answer, and the moment when the server is done with it."""

import re
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from _typeshed.wsgi import InputStream, StartResponse, WSGIApplication, WSGIEnvironment

MULTIPART_FORM = re.compile(r"multipart/form-data; ?boundary=[\w'()+,./:=?-]+")


def call_on_close(body: Iterable[bytes], done: Callable[[], None]) -> Iterable[bytes]:
    """The body, with `done` to be called when it is closed. A list is whole already, and servers close none."""
    if not isinstance(body, list):
        return ClosingBody(body, done)
    done()
    return body


class ClosingBody:
    __slots__ = ("body", "done")

    def __init__(self, body: Iterable[bytes], done: Callable[[], None]) -> None:
        self.body = body
        self.done = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.body)

    def close(self) -> None:
        """Called by the server, also where a client has gone (PEP 3333)."""
        try:
            if hasattr(self.body, "close"):
                self.body.close()
        finally:
            self.done()


def normalize_content_type(application: "WSGIApplication") -> "WSGIApplication":
    """Leaves the media type alone of a Content-Type: of strange parameters Django fails before it can answer."""

    def stripped(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        given = environ.get("CONTENT_TYPE")
        if given and not MULTIPART_FORM.fullmatch(given):
            environ["CONTENT_TYPE"] = given.partition(";")[0].strip() or "unknown"
        return application(environ, start_response)

    return stripped


def buffer_body(application: "WSGIApplication") -> "WSGIApplication":
    """Reads a body before Django sees the request.

    One without a length (chunked, or of HTTP/2) gets the one that Django goes by; one that Django refuses unread does
    not cost the client its connection; one that was cut off on its way is marked, lest it be taken for the whole.
    """

    def reading(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        # Django takes a method in any case.
        environ["REQUEST_METHOD"] = environ["REQUEST_METHOD"].upper()
        if environ["REQUEST_METHOD"] in ("POST", "PUT", "PATCH"):
            limit = environ.setdefault("library.body_limit", settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
            # One byte over the limit is enough to see that it is over.
            body = environ["wsgi.input"].read(limit + 1)
            if len(body) > limit:
                discard_rest(environ["wsgi.input"])
            length = environ.get("CONTENT_LENGTH") or str(len(body))
            environ |= {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": length}
            environ["library.cut_off"] = len(body) < int(length) <= limit
        return application(environ, start_response)

    return reading


def discard_rest(body: "InputStream") -> None:
    """Reads on for 64 MiB: a client that is still sending would miss the answer."""
    for _ in range(64):
        if not body.read(1024 * 1024):
            break
