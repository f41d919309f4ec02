"""Creates sources, the services that send us webhooks, and sends events as they do."""

import json
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx
from django.db.models.functions import Now
from django.utils import timezone

from tests.support.responses import REQUEST_ID
from webhooks import inbox
from webhooks.encryption import encrypt_secret
from webhooks.models import Received, Source, SourceSecret
from webhooks.signing import EVENT, sign

# The secret is good in each form.
SOURCE_NAME, SECRET = "branch", "whsec_dGhlIGtleSBvZiB0aGUgYnJhbmNoJ3Mgc291cmNl"


def create_source(name: str = SOURCE_NAME, secrets: tuple[str, ...] = (SECRET,), **fields: Any) -> Source:
    source = Source.objects.create(name=name, created_at=timezone.now(), **fields)
    for secret in secrets:
        SourceSecret.objects.create(source=source, sealed=encrypt_secret(secret), created_at=timezone.now())
    return source


def build_event(**fields: Any) -> dict[str, Any]:
    """Returns an event that was never sent, of a kind that no handler knows."""
    return {"id": str(uuid4()), "event": "shelf.moved", "timestamp": "2026-01-31T09:30:00Z", "data": {}, **fields}


def post_event(
    client: httpx.Client,
    body: dict[str, Any] | bytes,
    name: str = SOURCE_NAME,
    form: str = "B",
    secret: str = SECRET,
    now: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Sends the event, signed, as its source does."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    event_id = str(uuid4()) if isinstance(body, bytes) else body["id"]
    signed = sign(form, [secret], event_id, int(now or time.time()), content)
    kind = {} if isinstance(body, bytes) else {EVENT: body["event"]}
    all_headers = {"Content-Type": "application/json", "X-Request-ID": REQUEST_ID, **kind, **signed, **(headers or {})}
    return client.post(f"/webhooks/receive/{name}", content=content, headers=all_headers)


def store_received(source: Source, **fields: Any) -> Received:
    """Stores an event as received and not yet handled."""
    event = build_event(**fields)
    inbox.store_event(source, event["id"], event["event"], json.dumps(event).encode())
    return Received.objects.get(source=source, event_id=event["id"])


def make_all_due() -> None:
    """Makes every event that waits due now."""
    Received.objects.filter(next_at__isnull=False).update(next_at=Now())
