"""The lists of deliveries and received events find the few that wait or are dead by an index."""

import pytest
from django.db import connection
from django.db.models import QuerySet

from tests.support.endpoints import create_endpoint, publish_event
from tests.support.sources import create_source
from webhooks.models import Delivery, Event, Received

pytestmark = pytest.mark.usefixtures("db")
ROWS = 1_000


def fill_lists() -> dict[str, QuerySet[Delivery] | QuerySet[Received]]:
    """Adds finished rows. Returns the newest rows by the names of the models."""
    endpoint, source = create_endpoint(), create_source()
    publish_event()
    event = Event.objects.get()
    finished = {"next_at": None, "attempted": 1}
    Delivery.objects.bulk_create(
        Delivery(event=event, endpoint=endpoint, replay=number, state="delivered", **finished)
        for number in range(1, ROWS)
    )
    Received.objects.bulk_create(
        Received(source=source, event_id=str(number), kind="shelf.moved", body=b"{}", state="done", **finished)
        for number in range(ROWS)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE webhooks_delivery, webhooks_received")
    return {"delivery": Delivery.objects.order_by("-pk"), "received": Received.objects.order_by("-pk")}


def test_rows_that_wait_or_are_dead_are_found_by_an_index() -> None:
    for name, rows in fill_lists().items():
        for state in ("waiting", "dead"):
            index = f"{name}_is_{state}"
            assert index in rows.filter(state=state)[:50].explain(), index
