"""The OpenAPI document of version 2 describes the webhook addresses, and the requests that receivers get."""

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.endpoints import OLD_SECRET, create_made_endpoint, create_owner
from tests.support.endpoints import SECRET as FORM_SECRET
from tests.support.oauth_flows import create_key_header
from tests.support.openapi import (
    DELIVERIES,
    DELIVERY,
    DOCUMENT_URL,
    EVENTS,
    HOOK,
    HOOKS,
    JSON,
    PING,
    PROMOTE,
    REDELIVER,
    REPLAY,
    SECRET,
    V1_DOCUMENT_URL,
    check_responses,
    collect_operations,
    get_body_schema,
    is_valid,
    list_undocumented_responses,
)
from webhooks.encryption import encrypt_secret
from webhooks.models import Delivery, EndpointSecret, Event, SignatureForm
from webhooks.signing import sign
from webhooks.stream import StreamCursor

URL = "https://receiver.example/hook"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
KINDS = ["book.created", "book.updated", "book.deleted", "test.ping"]


@pytest.fixture
def owner(db: None) -> User:
    return create_owner()


@pytest.fixture(autouse=True)
def key_of_the_owner(api: httpx.Client, owner: User) -> None:
    """Every request has it."""
    api.headers.update(create_key_header(owner, "webhooks"))


def test_sent_events_are_as_documented(api: httpx.Client, document: dict[str, Any], owner: User) -> None:
    assert "webhooks" not in api.get(V1_DOCUMENT_URL).json()
    assert api.get(DOCUMENT_URL).json()["webhooks"].keys() == document["webhooks"].keys()
    book = create_book()
    change_book(book, year=1)
    delete_book(book)
    api.post(f"/api/v2/webhooks/{create_made_endpoint(owner).pk}/ping")
    assert list(document["webhooks"]) == KINDS
    for kind in KINDS:
        body = bytes(Event.objects.get(kind=kind).body)
        details = document["webhooks"][kind]["post"]
        content = details["requestBody"]["content"][JSON]
        assert is_valid(document, content["schema"], json.loads(body))
        assert not is_valid(document, content["schema"], {**json.loads(body), "data": {}})
        assert is_valid(document, content["schema"], content["examples"]["Event"]["value"])
        headers = {header["name"]: header["schema"] for header in details["parameters"]}
        required = {header["name"] for header in details["parameters"] if header["required"]}
        sent = {"X-Webhook-Event": kind}
        for form in SignatureForm.values:
            sent |= sign(form, [FORM_SECRET, FORM_SECRET], json.loads(body)["id"], 1769851800, body)
            assert [is_valid(document, headers[name], value) for name, value in sent.items()] == [True] * len(sent)
        assert (required, headers.keys()) == ({"X-Webhook-Event"}, sent.keys())


ALLOWED_FIELDS: list[dict[str, Any]] = [
    {},
    {"events": ["book.created", "book.deleted"], "signature_form": "A"},
    {"secret": "a" * 24, "in_flight_limit": 1000, "description": ""},
    {"id": 1, "state": "disabled", "reason": "", "created_at": "", "pending_secret": False},
    {"signature_form": "C"},
]
FORBIDDEN_FIELDS: list[dict[str, Any]] = [
    {"events": []}, {"events": ["*", "book.created"]}, {"events": ["test.ping"]}, {"signature_form": "D"},
    {"secret": "a" * 23}, {"secret": "é" * 24}, {"in_flight_limit": 1001}, {"url": "a" * 2001}, {"url": "http://"},
    {"kinds": ["*"]},
]  # fmt: skip


def test_the_document_allows_what_the_library_accepts(api: httpx.Client, document: dict[str, Any]) -> None:
    schema = get_body_schema(document, "post", HOOKS)
    for is_allowed, rows in ((True, ALLOWED_FIELDS), (False, FORBIDDEN_FIELDS)):
        for fields in rows:
            body = {"url": URL, "events": ["*"], **fields}
            assert is_valid(document, schema, body) is is_allowed, fields
            assert api.post(HOOKS, json=body).status_code == (201 if is_allowed else 422), fields


def test_a_new_secret_needs_no_body(document: dict[str, Any]) -> None:
    required_bodies = {
        path: details["requestBody"]["required"]
        for (_, path), details in collect_operations(document).items()
        if "requestBody" in details
    }
    assert [path for path, required in required_bodies.items() if not required] == [SECRET]


def test_real_responses_are_as_documented(api: httpx.Client, document: dict[str, Any]) -> None:
    created = api.post(HOOKS, json={"url": URL, "events": ["*"]})
    webhook = created.headers["Location"]
    create_book()
    delivery = Delivery.objects.get()
    delivery.attempts.create(started_at=timezone.now(), milliseconds=12, status=None, error="No.", answer=b"\xff")
    period = {"events": ["*"], "after": "2026-01-31T00:00:00+01:00"}
    responses = [
        ("post", HOOKS, 201, created),
        ("get", HOOKS, 200, api.get(HOOKS)),
        ("get", HOOK, 200, api.get(webhook)),
        ("patch", HOOK, 200, api.patch(webhook, json={"description": "Ours"})),
        ("post", SECRET, 201, api.post(f"{webhook}/secret")),
        ("post", PROMOTE, 200, api.post(f"{webhook}/secret/promote")),
        ("post", PING, 202, api.post(f"{webhook}/ping")),
        ("post", REPLAY, 202, api.post(f"{webhook}/replay", json=period)),
        ("get", DELIVERIES, 200, api.get(f"{webhook}/deliveries?limit=1")),
        ("get", DELIVERY, 200, api.get(f"{webhook}/deliveries/{delivery.pk}")),
        ("post", REDELIVER, 202, api.post(f"{webhook}/deliveries/{delivery.pk}/redeliver")),
        ("get", EVENTS, 200, api.get(EVENTS)),
    ]
    check_responses(document, responses)


def test_the_examples_of_errors_are_real(api: httpx.Client, document: dict[str, Any]) -> None:
    webhook = api.post(HOOKS, json={"url": URL, "events": ["*"]}).headers["Location"]
    create_book()
    delivery = Delivery.objects.get()
    private, period = {"url": "https://10.0.0.1/", "events": ["*"]}, {"events": ["*"], "after": "2026-01-31T00:00:00Z"}
    expired = StreamCursor(0, 0, LONG_AGO).encode()
    responses = [
        ("post", HOOKS, api.post(HOOKS, json=private)),
        ("patch", HOOK, api.patch(webhook, json={"url": private["url"]})),
        ("post", SECRET, api.post(f"{webhook}/secret", json={"secret": "short"})),
        ("post", PROMOTE, api.post(f"{webhook}/secret/promote")),
        ("post", REPLAY, api.post(f"{webhook}/replay", json={**period, "events": []})),
        ("get", DELIVERIES, api.get(f"{webhook}/deliveries?limit=501")),
        ("get", EVENTS, api.get(f"{EVENTS}?after={expired}")),
        ("get", EVENTS, api.get(f"{EVENTS}?after=x")),
    ]
    # A secret of an older release cannot sign in form C.
    EndpointSecret.objects.update(sealed=encrypt_secret(OLD_SECRET))
    responses.append(("patch", HOOK, api.patch(webhook, json={"signature_form": "C"})))
    api.patch(webhook, json={"state": "disabled"}).raise_for_status()
    responses += [
        ("post", PING, api.post(f"{webhook}/ping")),
        ("post", REPLAY, api.post(f"{webhook}/replay", json=period)),
        ("post", REDELIVER, api.post(f"{webhook}/deliveries/{delivery.pk}/redeliver")),
    ]
    assert {response.status_code // 100 for *_, response in responses} == {4}
    assert list_undocumented_responses(document, responses) == []
