"""The WSGI application with the compiled path and without it, called as a server calls it."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults

from django.test.utils import override_settings

from tests.support.request_strategies import Request

# Sent with every request, so that the answers of two variants are equal.
REQUEST_ID = "one-and-the-same"


class Answer(NamedTuple):
    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def get_header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class ApplicationVariant:
    """One variant of the application. Its setting holds only inside `override_settings`."""

    def __init__(self, compiled: bool) -> None:
        # Imported here because the module needs the collected static files.
        from library_site.wsgi import build_application, pages_handler

        self.compiled = compiled
        # Whether it has answered the plain requests once.
        self.has_learned = False
        with self.override_settings():
            self.application = build_application(pages_handler)

    def override_settings(self, **changes: Any) -> override_settings:
        return override_settings(COMPILED_PATH=self.compiled, **changes)

    def send(self, request: Request, credentials: Mapping[str, str] | None = None) -> Answer:
        starts: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            starts.append((status, headers))

        body = self.application(build_environ(request, {**request.headers, **(credentials or {})}), start_response)
        [(status, headers)] = starts
        answer = Answer(status, headers, b"".join(body))
        if hasattr(body, "close"):
            body.close()
        return answer


def build_environ(request: Request, headers: Mapping[str, str]) -> dict[str, Any]:
    accept = {} if request.spelling.accept is None else {"Accept": request.spelling.accept}
    length = {"Content-Length": str(len(request.body))} if request.body else {}
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": (request.spelling.prefix + request.path).encode().decode("latin-1"),
        "QUERY_STRING": "&".join(filter(None, [request.spelling.query, request.query])),
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.input": BytesIO(request.body),
    }
    for name, value in {"Host": "127.0.0.1", "X-Request-ID": REQUEST_ID, **accept, **length, **headers}.items():
        environ[environ_key(name)] = value.encode().decode("latin-1")
    setup_testing_defaults(environ)
    return environ


def environ_key(header: str) -> str:
    """Returns the key of a header in the WSGI environ (PEP 3333)."""
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
