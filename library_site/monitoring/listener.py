"""Answers probes on a separate port, also while all threads of the server hang.

Each process of the server has a thread for it. All listen on the same port (SO_REUSEPORT): the system chooses one for
each connection.
"""

import socket
from collections.abc import Iterable
from socketserver import TCPServer, ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from django.http import HttpRequest, HttpResponse

from library_site.http.handlers import LibraryRequest
from library_site.monitoring.probes import ProbesMiddleware

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Seconds that a client has for its request.
REQUEST_TIMEOUT = 5


class Listener(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_port = True

    def __init__(self, host: str, port: int) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), ProbeHandler)
        self.get_response = ProbesMiddleware(answer_not_found)
        self.set_app(self.respond)

    def server_bind(self) -> None:
        """Skips the DNS query of http.server for the name of the host: it can take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def respond(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        response = self.get_response(LibraryRequest(environ))
        start_response(f"{response.status_code} {response.reason_phrase}", [*response.items()])
        return [response.content]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores it: a client that disconnects is not an error of the library."""


class ProbeHandler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing: probes come every few seconds."""


def answer_not_found(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=404)


def start_listener(host: str, port: int) -> Listener:
    """Listens until the process ends."""
    listener = Listener(host, port)
    Thread(target=listener.serve_forever, name="probes", daemon=True).start()
    return listener
