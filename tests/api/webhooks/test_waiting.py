"""An owner may have only so many deliveries waiting: pings, redeliveries and replays beyond that are refused."""

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from tests.support.admin_pages import read_text, submit_action
from tests.support.books import build_book
from tests.support.endpoints import (
    claim_deliveries,
    create_endpoint,
    create_made_endpoint,
    create_owner,
    publish_event,
)
from tests.support.oauth_flows import create_key_header
from tests.support.pages import parse_error
from tests.support.webhooks_admin import DELIVERIES, ENDPOINTS, attempt_deliveries, build_replay_form
from webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.usefixtures("db")
HOOKS = "/api/v2/webhooks"
MESSAGE = "Too many deliveries are waiting: wait until some are sent, or ask for fewer"
SPAN = {"events": ["*"], "after": "2026-01-01T00:00:00Z"}
PATHS = ["ping", "replay", "deliveries/{delivery}/redeliver"]


@pytest.fixture(autouse=True)
def maximum(settings: Settings) -> int:
    settings.WEBHOOKS_MAX_WAITING = 3
    return 3


@pytest.fixture
def endpoint(api: httpx.Client) -> Endpoint:
    """The endpoint of an owner, whose key each request has."""
    owner = create_owner()
    api.headers.update(create_key_header(owner, "webhooks"))
    return create_made_endpoint(owner)


def send_request(api: httpx.Client, endpoint: Endpoint, path: str) -> httpx.Response:
    delivery = Delivery.objects.filter(endpoint=endpoint).latest("pk")
    address = f"{HOOKS}/{endpoint.pk}/{path.format(delivery=delivery.pk)}"
    return api.post(address, json=SPAN if path == "replay" else None)


def test_the_api_refuses_what_would_be_too_many(api: httpx.Client, endpoint: Endpoint) -> None:
    for _ in range(3):
        publish_event()
    refusals = [send_request(api, endpoint, path) for path in PATHS]
    assert [parse_error(refusal)[:2] for refusal in refusals] == [(409, "CONFLICT")] * 3
    assert {refusal.json()["error"]["message"] for refusal in refusals} == {MESSAGE}
    assert Delivery.objects.count() == 3


def test_all_endpoints_of_an_owner_count_together_in_any_state(api: httpx.Client, endpoint: Endpoint) -> None:
    create_endpoint(endpoint.owner, kinds="book.deleted")
    for _ in range(4):
        publish_event()
    other_states = Endpoint.objects.exclude(pk=endpoint.pk)
    Delivery.objects.filter(pk__in=Delivery.objects.order_by("pk").values("pk")[:3]).update(endpoint=other_states.get())
    Delivery.objects.filter(endpoint=endpoint).update(state="delivered", next_at=None)
    for state in ("active", "disabled", "deleted"):
        other_states.update(state=state)
        assert send_request(api, endpoint, "ping").status_code == 409, state


def test_what_was_sent_makes_room(api: httpx.Client, endpoint: Endpoint) -> None:
    address = f"{HOOKS}/{endpoint.pk}/ping"
    assert [api.post(address).status_code for _ in range(4)] == [202, 202, 202, 409]
    attempt_deliveries()
    assert api.post(address).status_code == 202


def test_the_events_of_books_are_never_refused(api: httpx.Client) -> None:
    create_endpoint()
    for number in range(4):
        assert api.post("/api/v2/books", json=build_book(isbn=f"isbn-{number}")).status_code == 201
    assert Delivery.objects.count() == 4


def test_the_admin_refuses_what_would_be_too_many(developer: Client, ada: User) -> None:
    endpoint = create_endpoint(ada)
    publish_event()
    publish_event()
    deliveries = list(Delivery.objects.all())
    pages = [
        submit_action(developer, DELIVERIES, "redeliver", *deliveries),
        developer.post(f"{ENDPOINTS}{endpoint.pk}/replay/", build_replay_form(), follow=True),
        submit_action(developer, ENDPOINTS, "ping", endpoint, create_endpoint(ada)),
    ]
    assert [MESSAGE in read_text(page) for page in pages] == [True] * 3
    assert list(Delivery.objects.all()) == deliveries


def test_an_action_for_several_owners_counts_each_alone(root: Client) -> None:
    for name in ("first", "second"):
        create_endpoint(create_owner(name))
    publish_event()
    submit_action(root, ENDPOINTS, "ping", *Endpoint.objects.all())
    assert Delivery.objects.count() == 4
    submit_action(root, ENDPOINTS, "ping", *Endpoint.objects.all())
    assert Delivery.objects.count() == 6
    assert len(claim_deliveries()) == 6
