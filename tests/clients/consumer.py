"""A consumer of events, written from Section 6 of the specification only, without knowledge of the library."""

import hmac
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Consumer(ThreadingHTTPServer):
    def __init__(self, secret: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.secret, self.responses, self.events = secret.encode(), list[int](), dict[str, Any]()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        consumer: Any = self.server
        body, timestamp = self.rfile.read(int(self.headers["Content-Length"])), self.headers["X-Webhook-Timestamp"]
        digest_a, digest_b = (
            hmac.digest(consumer.secret, signed_bytes, "sha256").hex()
            for signed_bytes in (body, timestamp.encode() + b"." + body)
        )
        signature = self.headers["X-Webhook-Signature"]
        is_valid = hmac.compare_digest(signature, f"sha256={digest_a}") or hmac.compare_digest(
            signature, f"t={timestamp},s={digest_b}"
        )
        if is_valid:
            event = json.loads(body)
            consumer.events.setdefault(event["id"], (self.headers["X-Webhook-Event"], event))
        consumer.responses.append(200 if is_valid else 401)
        self.send_response(consumer.responses[-1])
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}" if is_valid else b'{"error": "The signature is not valid."}')
