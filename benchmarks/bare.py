"""Applications with nothing behind them, to see what a server does on its own."""

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# As long as a book.
BODY = b'{"title": "%s"}' % (b"-" * 180)
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]


def static(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    start_response("200 OK", HEADERS)
    return [BODY]


def mirror(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """What the server makes of a request, but for its own objects and what its process has anyway."""
    made = {name: value for name, value in environ.items() if name not in os.environ and type(value) in (str, bool)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(made).encode()]
