"""A receiver on this machine, which answers as a test wants it to."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)


class Sent(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Keeps what it was sent; `answer` writes the answer, by the handler's own methods."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Any], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.sent: list[Sent] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.sent.append(Sent(self.path, dict(self.headers), body))
        self.server.answer(self)

    def log_message(self, *_: Any) -> None:
        """Not in a test's output."""


def answering(status: int, body: bytes = b"", **headers: str) -> Callable[[Any], None]:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def receiving(answer: Callable[[Any], None]) -> AbstractContextManager[Receiver]:
    return running(Receiver(answer))


@contextmanager
def running(server: Server) -> Iterator[Server]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
