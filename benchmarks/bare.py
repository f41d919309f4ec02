"""WSGI applications that do nothing, to measure what the server alone costs."""

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# As many bytes as a book has in JSON.
BODY = b'{"title": "%s"}' % (b"-" * 180)
HEADERS = [("Content-Type", "application/json"), ("Content-Length", str(len(BODY)))]


def serve_static(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    start_response("200 OK", HEADERS)
    return [BODY]


def echo_environ(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
    """Answers with the environ that the server builds, without objects and without the process's environment."""
    members = {name: value for name, value in environ.items() if name not in os.environ and type(value) in (str, bool)}
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(members).encode()]
