"""The application with the compiled path and without, called as a server would."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults

from django.test.utils import override_settings

from tests.support.request_strategies import Request

ID = "one-and-the-same"


class Answer(NamedTuple):
    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for other, value in self.headers if other.lower() == name.lower()), None)


class Way:
    """Its setting is in force inside `chosen` alone."""

    def __init__(self, compiled: bool) -> None:
        # Needs the static files.
        from library_site.wsgi import build_application, pages_handler

        self.compiled = compiled
        with self.chosen():
            self.application = build_application(pages_handler)

    def chosen(self, **more: Any) -> override_settings:
        return override_settings(COMPILED_PATH=self.compiled, **more)

    def answer(self, request: Request, credentials: Mapping[str, str] | None = None) -> Answer:
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def begin(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            begun.append((status, headers))

        body = self.application(environ_of(request, {**request.headers, **(credentials or {})}), begin)
        [(status, headers)] = begun
        answer = Answer(status, headers, b"".join(body))
        if hasattr(body, "close"):
            body.close()
        return answer


def environ_of(request: Request, headers: Mapping[str, str]) -> dict[str, Any]:
    accept = {} if request.spelling.accept is None else {"Accept": request.spelling.accept}
    length = {"Content-Length": str(len(request.body))} if request.body else {}
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": (request.spelling.home + request.path).encode().decode("latin-1"),
        "QUERY_STRING": "&".join(filter(None, [request.spelling.query, request.query])),
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.input": BytesIO(request.body),
    }
    for name, value in {"Host": "127.0.0.1", "X-Request-ID": ID, **accept, **length, **headers}.items():
        environ[variable(name)] = value.encode().decode("latin-1")
    setup_testing_defaults(environ)
    return environ


def variable(header: str) -> str:
    """The name of a header in the environ (PEP 3333)."""
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
