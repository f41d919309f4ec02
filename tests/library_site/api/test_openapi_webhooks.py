"""What the OpenAPI document of version 2 promises of webhooks, and of what is sent."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.utils import timezone

from tests.support.books import new_book
from tests.support.endpoints import endpoint, key_for, listener
from tests.support.openapi import (
    ALL,
    DELIVERIES,
    DELIVERY,
    EVENTS,
    FIRST,
    HOOK,
    HOOKS,
    JSON,
    PING,
    PROMOTE,
    REDELIVER,
    REPLAY,
    SECOND,
    SECRET,
    accepts,
    body,
    operations,
    response,
    unreal_examples,
)
from webhooks.models import Delivery, Event
from webhooks.signing import signature
from webhooks.stream import StreamCursor

URL = "https://receiver.example/hook"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
KINDS = ["book.created", "book.updated", "book.deleted", "test.ping"]


@pytest.fixture
def document(api: httpx.Client) -> dict[str, Any]:
    whole: dict[str, Any] = api.get(SECOND).json()
    return whole


@pytest.fixture
def by(db: None) -> dict[str, str]:
    return key_for(listener())


@pytest.mark.once
def test_everything_of_webhooks_needs_their_scope(document: dict[str, Any]) -> None:
    needing = {
        operation
        for operation, told in operations(document).items()
        if told.get("security") == [{"OAuth2": ["webhooks"]}, {"APIKey": []}]
    }
    assert needing == {
        *[("get", HOOKS), ("post", HOOKS), ("get", HOOK), ("patch", HOOK), ("delete", HOOK)],
        *[("post", SECRET), ("post", PROMOTE), ("post", PING), ("post", REPLAY)],
        *[("get", DELIVERIES), ("get", DELIVERY), ("post", REDELIVER), ("get", EVENTS)],
    }


@pytest.mark.parametrize("address", [SECOND, ALL])
def test_what_is_sent_is_as_documented(api: httpx.Client, address: str) -> None:
    document = api.get(address).json()
    book = api.post("/api/v2/books", json=new_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    api.delete(f"/api/v2/books/{book['id']}")
    owner = listener()
    api.post(f"/api/v2/webhooks/{endpoint(owner).pk}/ping", headers=key_for(owner))
    assert list(document["webhooks"]) == KINDS
    for kind in KINDS:
        sent = bytes(Event.objects.get(kind=kind).body)
        told = document["webhooks"][kind]["post"]
        content = told["requestBody"]["content"][JSON]
        assert accepts(document, content["schema"], json.loads(sent))
        assert accepts(document, content["schema"], content["examples"]["Event"]["value"])
        headers = {header["name"]: header["schema"] for header in told["parameters"]}
        assert headers.keys() == {"X-Webhook-Event", "X-Webhook-Timestamp", "X-Webhook-Signature"}
        assert accepts(document, headers["X-Webhook-Event"], kind)
        assert accepts(document, headers["X-Webhook-Timestamp"], "1769851800")
        for form in ("A", "B"):
            assert accepts(document, headers["X-Webhook-Signature"], signature(form, "secret", 1769851800, sent))


@pytest.mark.once
def test_version_1_alone_tells_of_no_webhooks(api: httpx.Client) -> None:
    assert "webhooks" not in api.get(FIRST).json()


@pytest.mark.once
@pytest.mark.parametrize(
    ("members", "good"),
    [
        ({}, True),
        ({"events": ["book.created", "book.deleted"], "signature_form": "A"}, True),
        ({"secret": "a" * 24, "in_flight_limit": 1000, "description": ""}, True),
        ({"id": 1, "state": "disabled", "reason": "", "created_at": "", "pending_secret": False}, True),
        ({"events": []}, False),
        ({"events": ["*", "book.created"]}, False),
        ({"events": ["book.created", "book.created"]}, False),
        ({"events": ["test.ping"]}, False),
        ({"signature_form": "C"}, False),
        ({"secret": "a" * 23}, False),
        ({"secret": "é" * 24}, False),
        ({"in_flight_limit": 1001}, False),
        ({"description": "a" * 201}, False),
        ({"url": "a" * 2001}, False),
        ({"kinds": ["*"]}, False),
    ],
)
def test_what_a_webhook_may_be_is_documented(
    api: httpx.Client, document: dict[str, Any], by: dict[str, str], members: dict[str, Any], good: bool
) -> None:
    whole = {"url": URL, "events": ["*"], **members}
    assert accepts(document, body(document, "post", HOOKS), whole) is good
    assert api.post(HOOKS, json=whole, headers=by).status_code == (201 if good else 422)


@pytest.mark.once
def test_a_new_secret_needs_no_body(document: dict[str, Any]) -> None:
    needed = {
        path: told["requestBody"]["required"]
        for (_, path), told in operations(document).items()
        if "requestBody" in told
    }
    assert [path for path, required in needed.items() if not required] == [SECRET]


def test_real_answers_are_as_documented(api: httpx.Client, document: dict[str, Any], by: dict[str, str]) -> None:
    hook = api.post(HOOKS, json={"url": URL, "events": ["*"]}, headers=by)
    one = hook.headers["Location"]
    api.post("/api/v2/books", json=new_book())
    delivery = Delivery.objects.get()
    delivery.attempts.create(started_at=timezone.now(), milliseconds=12, status=None, error="No.", answer=b"\xff")
    span = {"events": ["*"], "after": "2026-01-31T00:00:00+01:00"}
    answers = [
        ("post", HOOKS, 201, hook),
        ("get", HOOKS, 200, api.get(HOOKS, headers=by)),
        ("get", HOOK, 200, api.get(one, headers=by)),
        ("patch", HOOK, 200, api.patch(one, json={"description": "Ours"}, headers=by)),
        ("post", SECRET, 201, api.post(f"{one}/secret", headers=by)),
        ("post", PROMOTE, 200, api.post(f"{one}/secret/promote", headers=by)),
        ("post", PING, 202, api.post(f"{one}/ping", headers=by)),
        ("post", REPLAY, 202, api.post(f"{one}/replay", json=span, headers=by)),
        ("get", DELIVERIES, 200, api.get(f"{one}/deliveries?limit=1", headers=by)),
        ("get", DELIVERY, 200, api.get(f"{one}/deliveries/{delivery.pk}", headers=by)),
        ("post", REDELIVER, 202, api.post(f"{one}/deliveries/{delivery.pk}/redeliver", headers=by)),
        ("get", EVENTS, 200, api.get(EVENTS, headers=by)),
    ]
    for method, path, status, answer in answers:
        assert answer.status_code == status, (method, path)
        documented = response(document, method, path, status)
        assert answer.headers.keys() >= {name.lower() for name in documented.get("headers", {})}
        assert accepts(document, documented["content"][JSON]["schema"], answer.json()), (method, path)


@pytest.mark.once
def test_the_examples_of_errors_are_real(api: httpx.Client, document: dict[str, Any], by: dict[str, str]) -> None:
    one = api.post(HOOKS, json={"url": URL, "events": ["*"]}, headers=by).headers["Location"]
    api.post("/api/v2/books", json=new_book())
    delivery = Delivery.objects.get()
    reader = key_for(listener("reader"), "read")
    inside, span = {"url": "https://10.0.0.1/", "events": ["*"]}, {"events": ["*"], "after": "2026-01-31T00:00:00Z"}
    old = StreamCursor(0, 0, LONG_AGO).encode()
    answers = [
        ("get", HOOKS, api.get(f"{HOOKS}?limit=5", headers=by)),
        ("get", HOOKS, api.get(HOOKS, headers=reader)),
        ("post", HOOKS, api.post(HOOKS, content=b"{", headers=by)),
        ("post", HOOKS, api.post(HOOKS, json=inside, headers=by)),
        ("get", HOOK, api.get(f"{HOOKS}/0", headers=by)),
        ("patch", HOOK, api.patch(one, json={"url": inside["url"]}, headers=by)),
        ("delete", HOOK, api.delete(f"{one}?limit=5", headers=by)),
        ("post", SECRET, api.post(f"{one}/secret", json={"secret": "short"}, headers=by)),
        ("post", PROMOTE, api.post(f"{one}/secret/promote", headers=by)),
        ("post", REPLAY, api.post(f"{one}/replay", json={**span, "events": []}, headers=by)),
        ("get", DELIVERIES, api.get(f"{one}/deliveries?status=dead", headers=by)),
        ("get", DELIVERIES, api.get(f"{one}/deliveries?limit=501", headers=by)),
        ("get", DELIVERY, api.get(f"{one}/deliveries/0", headers=by)),
        ("get", EVENTS, api.get(f"{EVENTS}?cursor=x", headers=by)),
        ("get", EVENTS, api.get(f"{EVENTS}?after={old}", headers=by)),
        ("get", EVENTS, api.get(f"{EVENTS}?after=x", headers=by)),
        ("patch", HOOK, api.patch(one, json={"state": "disabled"}, headers=by)),
        ("post", PING, api.post(f"{one}/ping", headers=by)),
        ("post", REPLAY, api.post(f"{one}/replay", json=span, headers=by)),
        ("post", REDELIVER, api.post(f"{one}/deliveries/{delivery.pk}/redeliver", headers=by)),
    ]
    refusals = [(method, path, answer) for method, path, answer in answers if answer.status_code >= 400]
    assert len(refusals) == len(answers) - 1
    assert unreal_examples(document, refusals) == []
