"""A change, its event and its deliveries are one statement on PostgreSQL."""

from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from tests.support.books import build_book
from tests.support.endpoints import create_endpoint
from webhooks.models import Delivery, Event

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no statement with several parts")
WRITES = {
    "create": ("POST", "/api/v2/books", build_book(isbn="LOC 17"), {}),
    "change": ("PATCH", "/api/v2/books/{}", {"year": 1}, {}),
    "change of a version": ("PATCH", "/api/v2/books/{}", {"year": 1}, {"If-Match": '"v2-{}-1"'}),
    "delete": ("DELETE", "/api/v2/books/{}", None, {}),
}


@pytest.mark.parametrize(
    ("write", "compiled"), [*((write, True) for write in WRITES), ("change", False), ("delete", False)]
)
def test_an_endpoint_is_sent_the_first_change_after_its_creation(
    api: httpx.Client, settings: Settings, book: dict[str, Any], write: str, compiled: bool
) -> None:
    settings.COMPILED_PATH = compiled
    method, address, body, headers = WRITES[write]
    create_endpoint()
    events = Event.objects.count()
    filled_headers = {name: text.format(book["id"]) for name, text in headers.items()}
    with CaptureQueriesContext(connection) as queries:
        assert api.request(method, address.format(book["id"]), json=body, headers=filled_headers).is_success
    assert (Event.objects.count(), Delivery.objects.count()) == (events + 1, 1)
    assert sum("INTO webhooks_event" in query["sql"] for query in queries) == 1
