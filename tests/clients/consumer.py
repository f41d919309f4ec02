"""A consumer of events, written from Section 6 of the specification alone: it knows nothing of the library."""

import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Consumer(ThreadingHTTPServer):
    def __init__(self, secret: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.secret, self.answers, self.events = secret.encode(), list[int](), dict[str, Any]()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        consumer: Any = self.server
        body, time = self.rfile.read(int(self.headers["Content-Length"])), self.headers["X-Webhook-Timestamp"]
        a, b = (hmac.digest(consumer.secret, text, "sha256").hex() for text in (body, time.encode() + b"." + body))
        sent = self.headers["X-Webhook-Signature"]
        good = hmac.compare_digest(sent, f"sha256={a}") or hmac.compare_digest(sent, f"t={time},s={b}")
        if good:
            event = json.loads(body)
            consumer.events.setdefault(event["id"], (self.headers["X-Webhook-Event"], event))
        consumer.answers.append(200 if good else 401)
        self.send_response(consumer.answers[-1])
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}" if good else b'{"error": "The signature is not valid."}')
