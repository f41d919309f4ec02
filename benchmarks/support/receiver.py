"""A receiver of deliveries: `python -m benchmarks.support.receiver LOG`.

It prints its port, then answers 200 until it is killed. LOG gets a line for each delivery: the path and the event's id.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # Every body begins with the event's id.
        log.write(f"{self.path} {body[7:43].decode()}\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        """LOG is the only log."""


if __name__ == "__main__":
    with Path(sys.argv[1]).open("w", buffering=1) as log, ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        print(server.server_port, flush=True)
        server.serve_forever()
