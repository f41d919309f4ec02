"""A consumer and a provider, written from Section 6 of the specification only, exchange events with the library."""

import hmac
import json
import time
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from books.writing import changes
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import SECRET, create_endpoint
from tests.support.receivers import respond_with, start_receiver
from tests.support.server import Service, run_in_shell
from tests.support.sources import SECRET as SOURCES_SECRET
from webhooks.models import Delivery
from webhooks.outbox import create_ping

# Those of the specification.
each_form = pytest.mark.parametrize("form", ["A", "B"])


def sign(form: str, secret: str, timestamp: str, body: bytes) -> str:
    signed_bytes = body if form == "A" else timestamp.encode() + b"." + body
    digest = hmac.digest(secret.encode(), signed_bytes, "sha256").hex()
    return f"sha256={digest}" if form == "A" else f"t={timestamp},s={digest}"


@pytest.mark.usefixtures("transactional_db", "allow_private")
@each_form
def test_a_consumer_accepts_every_event_and_knows_one_that_comes_again(form: str) -> None:
    now, events = timezone.now(), list[dict[str, Any]]()
    with start_receiver(respond_with(200)) as receiver:
        endpoint = create_endpoint(url=receiver.url, form=form)
        with transaction.atomic():
            book = changes.create_book(build_book(title="Überall & <nirgends> 📖"), ACTOR, now)
            changes.change_book(book.id, {"year": 1814}, None, ACTOR, now)
            changes.delete_book(book.id, None, ACTOR, now)
            create_ping(endpoint, now)
        for attempted in (1, 2):
            Delivery.objects.update(state="waiting", next_at=Now())
            call_command("deliver_webhooks", once=True)
            assert set(Delivery.objects.values_list("state", "attempted")) == {("delivered", attempted)}
    for request in receiver.requests:
        signature = sign(form, SECRET, request.headers["X-Webhook-Timestamp"], request.body)
        assert request.headers["X-Webhook-Signature"] == signature
        events.append(json.loads(request.body))
        assert events[-1]["event"] == request.headers["X-Webhook-Event"]
        assert (type(events[-1]["data"]), type(events[-1]["timestamp"])) == (dict, str)
    kinds = ["book.created", "book.deleted", "book.updated", "test.ping"]
    assert sorted(event["event"] for event in events) == sorted(kinds * 2)
    assert len({event["id"] for event in events}) == len(kinds)


@each_form
def test_an_event_of_a_provider_is_stored_once(service: Service, form: str) -> None:
    name, event_id, timestamp = f"provider-{uuid4()}", str(uuid4()), str(int(time.time()))
    run_in_shell(
        service.database_url, f"from tests.support.sources import create_source; create_source({name!r}, form={form!r})"
    )
    body = json.dumps({"id": event_id, "event": "user.created", "data": {"name": "Zoë"}, "timestamp": "now"}).encode()
    headers = {"X-Webhook-Event": "user.created", "X-Webhook-Timestamp": timestamp}
    for secret, status in (("whsec_of-somebody-else", 401), (SOURCES_SECRET, 200), (SOURCES_SECRET, 200)):
        signed = {**headers, "X-Webhook-Signature": sign(form, secret, timestamp, body)}
        response = httpx.post(f"{service.url}/webhooks/receive/{name}", content=body, headers=signed)
        assert response.status_code == status
    assert service.count_rows(f"event_id = '{event_id}'", "received") == 1
