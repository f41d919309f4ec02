"""A consumer and a provider, written from the specification only, exchange events with the library."""

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from books.writing import changes
from tests.clients.consumer import Consumer
from tests.clients.provider import send_event
from tests.support.books import ACTOR, build_book
from tests.support.endpoints import SECRET, create_endpoint
from tests.support.receivers import run_server
from tests.support.server import Service, run_in_shell
from tests.support.sources import SECRET as SOURCES_SECRET
from webhooks.models import Delivery
from webhooks.outbox import create_ping

# Those of the specification.
each_form = pytest.mark.parametrize("form", ["A", "B"])


@pytest.mark.usefixtures("transactional_db", "allow_private")
@each_form
def test_a_consumer_accepts_every_event_and_knows_one_that_comes_again(form: str) -> None:
    now = timezone.now()
    with run_server(Consumer(SECRET)) as consumer:
        endpoint = create_endpoint(url=f"http://127.0.0.1:{consumer.server_port}/events", form=form)
        with transaction.atomic():
            book = changes.create_book(build_book(title="Überall & <nirgends> 📖"), ACTOR, now)
            changes.change_book(book.id, {"year": 1814}, None, ACTOR, now)
            changes.delete_book(book.id, None, ACTOR, now)
            create_ping(endpoint, now)
        call_command("deliver_webhooks", once=True)
        states = set(Delivery.objects.values_list("state", "attempted"))
        Delivery.objects.update(state="waiting", next_at=Now())
        call_command("deliver_webhooks", once=True)
    assert (consumer.responses, states) == ([200] * 8, {("delivered", 1)})
    # An event that comes again has the same id.
    kinds = ["book.created", "book.deleted", "book.updated", "test.ping"]
    assert sorted(kind for kind, _ in consumer.events.values()) == kinds
    assert all(event["event"] == kind for kind, event in consumer.events.values())
    assert all(isinstance(event["data"], dict) and event["timestamp"] for _, event in consumer.events.values())


@each_form
def test_an_event_of_a_provider_is_stored_once(service: Service, form: str) -> None:
    name = f"provider-{uuid4()}"
    run_in_shell(
        service.database_url, f"from tests.support.sources import create_source; create_source({name!r}, form={form!r})"
    )
    event: dict[str, Any] = {"id": str(uuid4()), "event": "user.created", "data": {"name": "Zoë"}, "timestamp": "now"}
    send = partial(send_event, f"{service.url}/webhooks/receive/{name}", form=form, event=event)
    assert send("whsec_of-somebody-else") == 401
    assert [send(SOURCES_SECRET), send(SOURCES_SECRET)] == [200, 200]
    assert service.count_rows(f"event_id = '{event['id']}'", "received") == 1
