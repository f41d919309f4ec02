"""Django's handler, with a request for what Django's own cannot read."""

import gc
import re
from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest

# Parameters of RFC 2231, which no client sends in Accept. Django raises a ValueError for a charset that it lacks.
EXTENDED_PARAMETER = re.compile(r";[^;,=]*\*[^;,=]*=[^;,]*")
# With the boundary, also a quoted one (RFC 2046, 5.1.1).
MULTIPART_FORM = re.compile(
    r"multipart/form-data\s*(?:;.*)?(;\s*boundary=(?:[\w'()+,./:=?-]+|\"[\w'()+,./:=? -]+\"))\s*(?:;.*)?",
    re.ASCII | re.IGNORECASE,
)
# Smaller bodies wait for the garbage collector.
COLLECTED_BYTES = 64 * 1024


class LibraryRequest(WSGIRequest):
    """Keeps of a Content-Type the media type, and of a form the boundary: Django fails on unusual parameters before any
    middleware runs.

    Methods are case-sensitive (RFC 9110, 9.1), but Django treats `get` as GET. So a method with lower-case letters gets
    a space at its end, which makes it unknown.
    """

    def __init__(self, environ: dict[str, Any]) -> None:
        content_type = environ.get("CONTENT_TYPE")
        if content_type:
            form = MULTIPART_FORM.fullmatch(content_type.strip())
            media_type = content_type.partition(";")[0].strip() or "unknown"
            environ["CONTENT_TYPE"] = f"multipart/form-data{form[1]}" if form else media_type
        if "*" in environ.get("HTTP_ACCEPT", ""):
            environ["HTTP_ACCEPT"] = EXTENDED_PARAMETER.sub("", environ["HTTP_ACCEPT"])
        super().__init__(environ)
        if not environ["REQUEST_METHOD"].isupper():
            self.method = f"{environ['REQUEST_METHOD']} "

    def close(self) -> None:
        """The body goes with the response. What was read of a refused one only the garbage collector frees, as views,
        requests and serializers refer to each other: of a large body at once.
        """
        super().close()
        self._stream.close()
        if len(vars(self).pop("_body", b"")) > COLLECTED_BYTES:
            # They are young. A process can have many old objects, which take long.
            gc.collect(1)


class LibraryHandler(WSGIHandler):
    request_class = LibraryRequest
