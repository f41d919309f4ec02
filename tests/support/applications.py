"""The WSGI application with the compiled path and without it, called as a server calls it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from wsgiref.util import setup_testing_defaults

import httpx
import pytest
from django.test.utils import override_settings

from library_site.api import compiled_path
from library_site.http import middleware, versions
from library_site.http.versions import Lifecycle
from tests.support.requests import Headers, Request

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

# Sent with every request, so that the responses of two variants are equal.
REQUEST_ID = "one-and-the-same"
DEPRECATION = Lifecycle(
    datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), "https://guide.example/", "https://log.example/"
)


class Answer(NamedTuple):
    status: str
    headers: list[tuple[str, str]]
    body: bytes

    def get_header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class ApplicationVariant:
    """One variant of the application. Its setting holds only inside `override_settings`."""

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        with self.override_settings():
            self.application = build_application()

    @cached_property
    def deprecated_application(self) -> "WSGIApplication":
        with self.override_settings():
            return build_deprecated_application()

    def override_settings(self, **changes: Any) -> override_settings:
        return override_settings(COMPILED_PATH=self.compiled, **changes)

    def send(
        self, request: Request, credentials: Mapping[str, str] | None = None, is_deprecated: bool = False
    ) -> Answer:
        """`is_deprecated` chooses the application whose versions are all deprecated."""
        starts: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
            starts.append((status, headers))

        application = self.deprecated_application if is_deprecated else self.application
        body = application(build_environ(request, {**request.headers, **(credentials or {})}), start_response)
        [(status, headers)] = starts
        response = Answer(status, headers, b"".join(body))
        if hasattr(body, "close"):
            body.close()
        return response


def build_application() -> "WSGIApplication":
    # Imported here because the module needs the collected static files.
    from library_site import wsgi

    return wsgi.build_application()


def open_client(address: str = "127.0.0.1") -> httpx.Client:
    """Returns a client, at this address, of a new application, which has the settings of now."""
    transport = httpx.WSGITransport(build_application(), remote_addr=address)
    return httpx.Client(transport=transport, base_url="http://127.0.0.1")


def build_deprecated_application() -> "WSGIApplication":
    """Builds the application with all its versions deprecated."""
    served = versions.get_versions()
    deprecated = {number: replace(version, lifecycle=DEPRECATION) for number, version in served.items()}
    with pytest.MonkeyPatch.context() as patch:
        for module in (compiled_path, middleware):
            patch.setattr(module, "get_versions", lambda: deprecated)
        return build_application()


def build_environ(request: Request, headers: Headers) -> dict[str, Any]:
    length = {"Content-Length": str(len(request.body))} if request.body else {}
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": (request.spelling.prefix + request.path).encode().decode("latin-1"),
        "QUERY_STRING": "&".join(filter(None, [request.spelling.query, request.query])),
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.input": BytesIO(request.body),
        # As the server says it.
        "wsgi.input_terminated": True,
    }
    setup_testing_defaults(environ)
    usual_headers = {"Host": "127.0.0.1", "X-Request-ID": REQUEST_ID, "Accept": request.spelling.accept, **length}
    for name, value in {**usual_headers, **headers}.items():
        if value is None:
            environ.pop(environ_key(name), None)
        else:
            environ[environ_key(name)] = value.encode().decode("latin-1")
    return environ


def environ_key(header: str) -> str:
    """Returns the key of a header in the WSGI environ (PEP 3333)."""
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
