"""Changes while no endpoint is active have no part for deliveries; a new endpoint misses nothing."""

from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from tests.support.books import build_book
from tests.support.endpoints import create_endpoint, create_owner
from webhooks.event_statements import active_endpoints
from webhooks.models import Delivery, Endpoint, Event

pytestmark = pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite has no statement with several parts")
BOOK = build_book()
WRITES = {
    "create": ("POST", "/api/v2/books", {**BOOK, "isbn": "LOC 17"}, {}),
    "change": ("PATCH", "/api/v2/books/{}", {"year": 1}, {}),
    "change of a version": ("PATCH", "/api/v2/books/{}", {"year": 1}, {"If-Match": '"v2-{}-1"'}),
    "delete": ("DELETE", "/api/v2/books/{}", None, {}),
}


@pytest.fixture(params=WRITES)
def write(request: pytest.FixtureRequest, api: httpx.Client, book: dict[str, Any]) -> httpx.Request:
    method, address, body, headers = WRITES[request.param]
    filled_headers = {name: text.format(book["id"]) for name, text in headers.items()}
    return api.build_request(method, address.format(book["id"]), json=body, headers=filled_headers)


@pytest.mark.parametrize("compiled", [True, False])
def test_an_endpoint_is_sent_the_first_change_after_its_creation(
    api: httpx.Client, settings: Settings, write: httpx.Request, compiled: bool
) -> None:
    settings.COMPILED_PATH = compiled
    assert not active_endpoints.may_exist
    create_endpoint()
    events = Event.objects.count()
    assert api.send(write).is_success
    assert (Event.objects.count(), Delivery.objects.count()) == (events + 1, 1)
    assert active_endpoints.may_exist


def test_a_change_after_the_last_endpoint_ended_finds_out(api: httpx.Client, write: httpx.Request) -> None:
    active_endpoints.may_exist = True
    create_endpoint(state=Endpoint.State.DISABLED)
    assert api.send(write).is_success
    assert (Delivery.objects.count(), active_endpoints.may_exist) == (0, False)


def test_an_endpoint_without_deliveries_costs_no_second_statement(api: httpx.Client, book: dict[str, Any]) -> None:
    create_endpoint(create_owner(), kinds="book.deleted")
    assert [count_statements(api, book, year=year) for year in (1, 2)] == [2, 1]
    assert Delivery.objects.count() == 0


def test_a_change_to_equal_values_writes_no_event(api: httpx.Client, book: dict[str, Any]) -> None:
    assert count_statements(api, book, year=book["year"]) == 0


def count_statements(api: httpx.Client, book: dict[str, Any], **values: Any) -> int:
    """Changes a book, and returns the number of statements that could write an event."""
    with CaptureQueriesContext(connection) as queries:
        assert api.patch(f"/api/v2/books/{book['id']}", json=values).is_success
    return sum("INTO webhooks_event" in query["sql"] for query in queries)


class OtherThreads:
    """What other threads make of the attribute: each time it is read, they have changed it since."""

    def __init__(self) -> None:
        self.is_first = True

    @property
    def may_exist(self) -> bool:
        self.is_first, may_exist = False, not self.is_first
        return may_exist

    @may_exist.setter
    def may_exist(self, value: bool) -> None:
        pass


def test_what_other_threads_find_out_meanwhile_repeats_no_change(
    api: httpx.Client, write: httpx.Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webhooks.event_statements.active_endpoints", OtherThreads())
    events = Event.objects.count()
    assert api.send(write).is_success
    assert Event.objects.count() == events + 1
