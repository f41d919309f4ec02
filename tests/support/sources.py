"""Other services, and what they send."""

import json
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import httpx
from django.db.models.functions import Now
from django.utils import timezone

from tests.support.responses import ID
from webhooks import inbox
from webhooks.encryption import encrypt
from webhooks.models import Received, Source, SourceSecret
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP, signature

NAME, SECRET = "branch", "whsec_of-the-branch"


def source(name: str = NAME, secrets: tuple[str, ...] = (SECRET,), **members: Any) -> Source:
    made = Source.objects.create(name=name, created_at=timezone.now(), **members)
    for secret in secrets:
        SourceSecret.objects.create(source=made, sealed=encrypt(secret), created_at=timezone.now())
    return made


def event(**members: Any) -> dict[str, Any]:
    """One that nothing was ever told of."""
    return {"id": str(uuid4()), "event": "shelf.moved", "timestamp": "2026-01-31T09:30:00Z", "data": {}, **members}


def post(
    client: httpx.Client,
    body: dict[str, Any] | bytes,
    name: str = NAME,
    form: str = "B",
    secret: str = SECRET,
    now: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Sends it as its source would."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    timestamp = int(now or time.time())
    signed = {TIMESTAMP: str(timestamp), SIGNATURE: signature(form, secret, timestamp, content)}
    told = {} if isinstance(body, bytes) else {EVENT: body["event"]}
    sent = {"Content-Type": "application/json", "X-Request-ID": ID, **told, **signed, **(headers or {})}
    return client.post(f"/webhooks/receive/{name}", content=content, headers=sent)


def received(of: Source, **members: Any) -> Received:
    """An event that was received, and waits."""
    sent = event(**members)
    inbox.store_event(of, sent["id"], sent["event"], json.dumps(sent).encode())
    return Received.objects.get(source=of, event_id=sent["id"])


def time_passes() -> None:
    """Until all that waits is due."""
    Received.objects.filter(next_at__isnull=False).update(next_at=Now())
