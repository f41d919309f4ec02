"""A receiver of webhooks on this machine; each test decides how it answers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class ReceivedRequest(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Keeps the requests that it received. `answer` writes the response with the methods of the handler."""

    daemon_threads = True

    def __init__(self, response: Callable[[Any], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = response
        self.requests: list[ReceivedRequest] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append(ReceivedRequest(self.path, dict(self.headers), body))
        self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        """Writes nothing: the log does not belong in the output of tests."""


def respond_with(status: int, body: bytes = b"", **headers: str) -> Callable[[Any], None]:
    """Returns an `answer` of a Receiver that sends this answer to every request."""

    def response(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return response


def start_receiver(response: Callable[[Any], None]) -> AbstractContextManager[Receiver]:
    return run_server(Receiver(response))


@contextmanager
def run_server(server: Server) -> Iterator[Server]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
