"""A provider of events, written from Section 6 of the specification only, without knowledge of the library."""

import hmac
import json
import time
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit


def send_event(url: str, secret: str, form: str, event: dict[str, Any]) -> int:
    """Sends the event, and returns the status of the response."""
    body, timestamp = json.dumps(event).encode(), str(int(time.time()))
    signed_bytes = body if form == "A" else timestamp.encode() + b"." + body
    digest = hmac.digest(secret.encode(), signed_bytes, "sha256").hex()
    headers = {
        "Content-Type": "application/json",
        "X-Webhook-Event": event["event"],
        "X-Webhook-Timestamp": timestamp,
        "X-Webhook-Signature": f"sha256={digest}" if form == "A" else f"t={timestamp},s={digest}",
    }
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request("POST", urlsplit(url).path, body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
