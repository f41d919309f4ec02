"""An endpoint belongs to what made it: an app sees its own alone, a person all of theirs, also by an API key."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks

from oauth.models import APIKey, Authorization
from oauth.tokens import revocations
from tests.support.admin_pages import list_rows, read_text, submit_action
from tests.support.credentials import create_app_header
from tests.support.endpoints import claim_deliveries, create_endpoint, create_owner, publish_event
from tests.support.oauth_flows import (
    build_bearer_header,
    create_confidential_app,
    create_key_header,
    create_public_app,
    obtain_tokens,
)
from tests.support.webhooks_admin import ENDPOINTS, build_endpoint_form
from webhooks.endpoints import ENDED_REASON
from webhooks.models import Delivery, Endpoint, EndpointSecret

pytestmark = pytest.mark.usefixtures("db")
HOOKS, KEYS = "/api/v2/webhooks", "/api/v2/api-keys"
URL = "https://receiver.example/hook"
SPAN = {"events": ["*"], "after": "2026-01-01T00:00:00Z"}
# Each operation on one endpoint, with a body that would succeed on an endpoint of one's own.
OPERATIONS: list[tuple[str, str, Any, int]] = [
    ("GET", "", None, 200), ("PATCH", "", {"url": "https://elsewhere.example/"}, 200), ("POST", "/secret", None, 201),
    ("POST", "/secret/promote", None, 200), ("POST", "/ping", None, 202), ("POST", "/replay", SPAN, 202),
    ("GET", "/deliveries", None, 200), ("GET", "/deliveries/{delivery}", None, 200),
    ("POST", "/deliveries/{delivery}/redeliver", None, 202), ("DELETE", "", None, 204),
]  # fmt: skip


@pytest.fixture
def owner() -> User:
    return create_owner()


def let_app_in(owner: User, name: str = "shelf") -> dict[str, str]:
    """Lets a new app into the library, for webhooks alone, and returns the header with its token."""
    return create_app_header(owner, create_public_app(name, "read webhooks"), "webhooks")


def create_app_key(api: httpx.Client, creator: dict[str, str]) -> dict[str, str]:
    response = api.post(KEYS, json={"name": "By the app", "scopes": "webhooks"}, headers=creator)
    assert response.status_code == 201, response.text
    return {"X-API-Key": response.json()["key"]}


def create_webhook(api: httpx.Client, headers: dict[str, str]) -> Endpoint:
    response = api.post(HOOKS, json={"url": URL, "events": ["*"]}, headers=headers)
    assert response.status_code == 201, response.text
    return Endpoint.objects.get(pk=response.json()["id"])


def list_webhooks(api: httpx.Client, headers: dict[str, str]) -> list[int]:
    return [webhook["id"] for webhook in api.get(HOOKS, headers=headers).json()["results"]]


def try_operations(api: httpx.Client, headers: dict[str, str], endpoint: Endpoint) -> list[int]:
    """Returns the status of each operation on the endpoint, which has a delivery and a pending secret."""
    publish_event()
    EndpointSecret.objects.create(endpoint=endpoint, sealed="x", state="pending", created_at=timezone.now())
    delivery = Delivery.objects.filter(endpoint=endpoint).latest("pk").pk
    address = f"{HOOKS}/{endpoint.pk}"
    requests = [(method, address + path.format(delivery=delivery), body) for method, path, body, _ in OPERATIONS]
    return [api.request(method, path, json=body, headers=headers).status_code for method, path, body in requests]


def test_an_app_has_what_it_made_and_a_key_of_the_person_all_endpoints(api: httpx.Client, owner: User) -> None:
    app, key = let_app_in(owner), create_key_header(owner, "webhooks")
    endpoints = [create_endpoint(owner), create_webhook(api, app), create_webhook(api, key)]
    assert list_webhooks(api, app) == [endpoints[1].pk]
    assert list_webhooks(api, key) == [endpoint.pk for endpoint in endpoints]
    for headers, endpoint in ((app, endpoints[1]), (key, endpoints[0])):
        assert try_operations(api, headers, endpoint) == [status for *_, status in OPERATIONS]


def test_nobody_and_no_app_has_the_endpoints_of_others(api: httpx.Client, owner: User) -> None:
    app = let_app_in(owner)
    creators = [let_app_in(owner, "other"), create_key_header(owner, "webhooks")]
    endpoints = [create_endpoint(owner), *(create_webhook(api, creator) for creator in creators)]
    app_key = create_app_key(api, app)
    stranger = create_key_header(create_owner("stranger"), "webhooks")
    assert [list_webhooks(api, headers) for headers in (app, app_key, stranger)] == [[], [], []]
    for headers, endpoint in zip((app, app_key, stranger), endpoints, strict=True):
        assert try_operations(api, headers, endpoint) == [404] * len(OPERATIONS)
        endpoint.refresh_from_db()
        assert (endpoint.url, endpoint.state, endpoint.secrets.count()) == (URL, "active", 2)


def test_the_keys_of_an_app_act_for_the_app(api: httpx.Client, owner: User) -> None:
    app = let_app_in(owner)
    first = create_app_key(api, app)
    second = create_app_key(api, first)
    endpoints = [create_webhook(api, headers).pk for headers in (app, first, second)]
    assert [list_webhooks(api, headers) for headers in (app, first, second)] == [endpoints] * 3


def test_an_app_that_is_let_in_again_begins_anew(
    api: httpx.Client, owner: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    app = create_confidential_app("bookshop", "read webhooks")
    first = build_bearer_header(obtain_tokens(api, owner, app, scope="webhooks")["access_token"])
    endpoint = create_webhook(api, first)
    second = build_bearer_header(obtain_tokens(api, owner, app, scope="webhooks")["access_token"])
    assert (list_webhooks(api, first), list_webhooks(api, second)) == ([endpoint.pk], [])
    with django_capture_on_commit_callbacks(execute=True):
        revocations.revoke_authorizations(Authorization.objects.all(), timezone.now())
    third = build_bearer_header(obtain_tokens(api, owner, app, scope="webhooks")["access_token"])
    assert list_webhooks(api, third) == []


def test_a_person_sees_all_of_theirs_with_what_made_them(developer: Client, api: httpx.Client, ada: User) -> None:
    made = [
        create_endpoint(ada),
        create_webhook(api, let_app_in(ada)),
        create_webhook(api, create_key_header(ada, "webhooks")),
    ]
    assert list_rows(developer.get(ENDPOINTS)) == made[::-1]
    for endpoint, name in zip(made[1:], ("Shelf", "API key Test"), strict=True):
        assert name in read_text(developer.get(f"{ENDPOINTS}{endpoint.pk}/change/"))
    address = f"{ENDPOINTS}{made[1].pk}/change/"
    assert "Shelf" in read_text(developer.get(address))
    Authorization.objects.get().application.delete()  # type: ignore[union-attr]  # it has one
    page_after = read_text(developer.get(address))
    assert ["A deleted app" in page_after, "made it has ended" in page_after] == [True, True]


def end_access(owner: User) -> None:
    revocations.revoke_authorizations(Authorization.objects.filter(user=owner), timezone.now())


def test_a_person_enables_an_ended_endpoint_and_has_it_from_then_on(
    developer: Client, api: httpx.Client, ada: User
) -> None:
    headers = let_app_in(ada)
    endpoint = create_webhook(api, headers)
    end_access(ada)
    submit_action(developer, ENDPOINTS, "enable", endpoint)
    endpoint.refresh_from_db()
    assert (endpoint.state, endpoint.reason) == ("active", "")
    assert (endpoint.creator, endpoint.authorization, endpoint.expires_at) == (None, None, None)
    publish_event()
    assert [leased.endpoint_id for leased in claim_deliveries()] == [endpoint.pk]
    Authorization.objects.all().delete()
    assert Endpoint.objects.get().state == "active"


def test_an_endpoint_that_has_not_ended_stays_the_apps_when_a_person_enables_it(
    developer: Client, api: httpx.Client, ada: User
) -> None:
    headers = let_app_in(ada)
    endpoint = create_webhook(api, headers)
    submit_action(developer, ENDPOINTS, "disable", endpoint)
    submit_action(developer, ENDPOINTS, "enable", endpoint)
    assert list_webhooks(api, headers) == [endpoint.pk]
    end_access(ada)
    assert Endpoint.objects.get().state == "disabled"


def test_an_app_enables_what_its_ended_key_made(api: httpx.Client, owner: User) -> None:
    app = let_app_in(owner)
    endpoint = create_webhook(api, create_app_key(api, app))
    address = f"{KEYS}/{APIKey.objects.get().prefix}"
    assert api.delete(address, headers=app).status_code == 204
    ended = api.get(f"{HOOKS}/{endpoint.pk}", headers=app).json()
    assert (ended["state"], ended["reason"]) == ("disabled", ENDED_REASON)
    enabled = api.patch(f"{HOOKS}/{endpoint.pk}", json={"state": "active"}, headers=app).json()
    assert (enabled["state"], enabled["reason"]) == ("active", "")
    end_access(owner)
    assert Endpoint.objects.get().state == "disabled"


def test_an_endpoint_that_gets_another_owner_is_theirs(api: httpx.Client, root: Client, owner: User) -> None:
    headers = let_app_in(owner)
    endpoint = create_webhook(api, headers)
    other = create_owner("other")
    root.post(f"{ENDPOINTS}{endpoint.pk}/change/", build_endpoint_form(owner=other.username))
    end_access(owner)
    endpoint.refresh_from_db()
    assert (endpoint.owner, endpoint.authorization, endpoint.state) == (other, None, "active")


def test_a_process_that_does_not_know_yet_that_access_has_ended_changes_nothing(api: httpx.Client, owner: User) -> None:
    """Processes learn it within five seconds; this one read the list before."""
    headers = let_app_in(owner)
    endpoint = create_webhook(api, headers)
    api.post(f"{HOOKS}/{endpoint.pk}/secret", headers=headers)
    end_access(owner)
    before = list(Endpoint.objects.values()), list(EndpointSecret.objects.values())
    address = f"{HOOKS}/{endpoint.pk}"
    for method, path, body in (
        ("POST", HOOKS, {"url": URL, "events": ["*"]}),
        ("PATCH", address, {"state": "active"}),
        ("POST", f"{address}/secret", None),
        ("POST", f"{address}/secret/promote", None),
        ("DELETE", address, None),
        ("POST", KEYS, {"name": "Too late", "scopes": "webhooks"}),
    ):
        response = api.request(method, path, json=body, headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHENTICATED"), (method, path)
        assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
    assert (list(Endpoint.objects.values()), list(EndpointSecret.objects.values())) == before
    assert not APIKey.objects.exists()
