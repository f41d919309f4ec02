"""Webhooks over HTTP, as their owners create, test and follow them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks, Settings

from oauth.authentication import build_challenge
from tests.support import oauth_flows
from tests.support.books import build_book
from tests.support.endpoints import (
    OLD_SECRET,
    create_endpoint,
    create_key_header,
    create_made_endpoint,
    create_owner,
)
from tests.support.pages import parse_error, walk_pages
from webhooks import endpoints
from webhooks.encryption import decrypt_secret, encrypt_secret
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event
from webhooks.ssrf import NOT_PUBLIC_MESSAGE

HOOKS = "/api/v2/webhooks"
URL = "https://receiver.example/hook"
FIELDS = {"url": URL, "events": ["*"]}
OPERATIONS = [
    ("GET", ""),
    ("POST", ""),
    *[(method, "/{id}") for method in ("GET", "PATCH", "DELETE")],
    *[("POST", f"/{{id}}/{action}") for action in ("secret", "secret/promote", "ping", "replay")],
    ("GET", "/{id}/deliveries"),
    ("GET", "/{id}/deliveries/{delivery}"),
    ("POST", "/{id}/deliveries/{delivery}/redeliver"),
]
SECRET = "a secret of the client's own, ~!"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def owner(db: None) -> User:
    return create_owner()


@pytest.fixture
def key_header(owner: User) -> dict[str, str]:
    return create_key_header(owner)


def create_webhook(api: httpx.Client, key_header: dict[str, str], **fields: Any) -> dict[str, Any]:
    response = api.post(HOOKS, json={**FIELDS, **fields}, headers=key_header)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def deliver_new_book(api: httpx.Client, endpoint: Endpoint) -> Delivery:
    """The delivery of a new book to the endpoint."""
    api.post("/api/v2/books", json=build_book())
    return Delivery.objects.filter(endpoint=endpoint).latest("pk")


def read_secret(webhook_id: int, state: str = "active") -> str:
    return decrypt_secret(EndpointSecret.objects.get(endpoint=webhook_id, state=state).sealed)


def format_time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def list_fields(response: httpx.Response) -> set[str]:
    return {detail["field"] for detail in response.json()["error"]["details"]}


def list_problems(response: httpx.Response) -> list[tuple[str, str]]:
    return [(detail["field"], detail["message"]) for detail in response.json()["error"]["details"]]


def test_a_new_webhook_shows_its_secret_once(api: httpx.Client, key_header: dict[str, str]) -> None:
    fields = {
        "url": URL,
        "events": ["book.created", "book.deleted"],
        "signature_form": "A",
        "description": "Ours",
        "in_flight_limit": 7,
    }
    response = api.post(HOOKS, json=fields, headers=key_header)
    hook = response.json()
    stored = Endpoint.objects.get()
    assert response.status_code == 201
    assert response.headers["Location"] == f"{HOOKS}/{stored.pk}"
    assert response.headers["Cache-Control"] == "no-store"
    assert hook == {
        "id": stored.pk,
        **fields,
        "state": "active",
        "reason": "",
        "created_at": format_time(stored.created_at),
        "pending_secret": False,
        "key_encoding": "utf-8",
        "secret": hook["secret"],
    }
    assert hook["secret"] == read_secret(hook["id"])
    del hook["secret"]
    assert api.get(response.headers["Location"], headers=key_header).json() == hook
    assert api.get(HOOKS, headers=key_header).json() == {"results": [hook], "next": None, "previous": None}


def test_absent_fields_have_defaults(api: httpx.Client, key_header: dict[str, str]) -> None:
    defaults = {"events": ["*"], "signature_form": "B", "description": "", "in_flight_limit": 50, "state": "active"}
    assert create_webhook(api, key_header).items() >= defaults.items()


def test_a_client_may_choose_the_secret(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header, secret=SECRET)
    assert hook["secret"] == SECRET == read_secret(hook["id"])
    assert SECRET not in str(EndpointSecret.objects.values())


def test_a_new_webhook_is_sent_the_next_events(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header, events=["book.created"])
    assert deliver_new_book(api, Endpoint.objects.get(pk=hook["id"])).event.kind == "book.created"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "ftp://receiver.example/"}, "url"),
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"url": "https://printer.local/"}, "url"),
        ({"url": "https://user@receiver.example/"}, "url"),
        ({"url": 7}, "url"),
        ({"url": None}, "url"),
        ({"events": []}, "events"),
        ({"events": ["book.burned"]}, "events"),
        ({"events": ["*", "book.created"]}, "events"),
        ({"events": ["book.created", "book.created"]}, "events"),
        ({"events": ["test.ping"]}, "events"),
        ({"events": [["*"]]}, "events"),
        ({"events": "*"}, "events"),
        ({"signature_form": "D"}, "signature_form"),
        ({"signature_form": "C", "secret": SECRET}, "secret"),
        ({"signature_form": "C", "secret": OLD_SECRET}, "secret"),
        ({"description": "a" * 201}, "description"),
        ({"description": "\0"}, "description"),
        ({"in_flight_limit": 0}, "in_flight_limit"),
        ({"in_flight_limit": 1001}, "in_flight_limit"),
        ({"in_flight_limit": "5"}, "in_flight_limit"),
        ({"secret": "a" * 23}, "secret"),
        ({"secret": "a" * 201}, "secret"),
        ({"secret": "a" * 24 + "\n"}, "secret"),
        ({"secret": "é" * 24}, "secret"),
        ({"secret": 10**30}, "secret"),
        ({"kinds": ["*"]}, "kinds"),
    ],
)
def test_the_wrong_field_of_a_body_is_named(
    api: httpx.Client, key_header: dict[str, str], fields: dict[str, Any], field: str
) -> None:
    response = api.post(HOOKS, json={**FIELDS, **fields}, headers=key_header)
    assert (response.status_code, list_fields(response)) == (422, {field})
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize("field_name", ["signature_form", "url", "description", "events"])
def test_a_lone_surrogate_is_refused(api: httpx.Client, key_header: dict[str, str], field_name: str) -> None:
    body = json.dumps({**FIELDS, field_name: "\ud800"}).encode()
    response = api.post(HOOKS, content=body, headers={**key_header, "Content-Type": "application/json"})
    assert (response.status_code, list_fields(response)) == (422, {field_name})


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000/", "https://10.0.0.1/", "http://receiver.example/"])
def test_the_refusal_of_a_private_receiver_names_the_setting(
    api: httpx.Client, key_header: dict[str, str], url: str
) -> None:
    [(field, message)] = list_problems(api.post(HOOKS, json={**FIELDS, "url": url}, headers=key_header))
    assert (field, message) == ("url", NOT_PUBLIC_MESSAGE)
    assert "WEBHOOKS_ALLOW_PRIVATE=true" in message


def test_private_receivers_may_be_allowed(api: httpx.Client, key_header: dict[str, str], settings: Settings) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    assert create_webhook(api, key_header, url="http://127.0.0.1:9000/")["url"] == "http://127.0.0.1:9000/"


def test_nobody_has_more_than_a_hundred(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    for _ in range(endpoints.MAX_ENDPOINTS_PER_USER - 1):
        create_endpoint(owner)
    hook = create_webhook(api, key_header)
    response = api.post(HOOKS, json=FIELDS, headers=key_header)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "You have 100 webhooks: delete one first"
    api.delete(f"{HOOKS}/{hook['id']}", headers=key_header)
    create_webhook(api, key_header)


def send_request(api: httpx.Client, method: str, path: str, key_header: dict[str, str] | None) -> httpx.Response:
    """Sends an operation on a webhook of the owner `listener`, with these headers."""
    endpoint = create_endpoint()
    address = HOOKS + path.format(id=endpoint.pk, delivery=deliver_new_book(api, endpoint).pk)
    return api.request(method, address, json={} if method in ("POST", "PATCH") else None, headers=key_header)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_credential_is_needed_even_in_an_open_library(api: httpx.Client, method: str, path: str) -> None:
    response = send_request(api, method, path, None)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert response.headers["WWW-Authenticate"] == build_challenge()


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_other_scopes_are_not_enough(api: httpx.Client, method: str, path: str) -> None:
    response = send_request(api, method, path, create_key_header(oauth_flows.create_librarian(), "read write"))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert response.headers["WWW-Authenticate"] == (build_challenge(error="insufficient_scope", scope="webhooks"))


@pytest.mark.parametrize(("method", "path"), [operation for operation in OPERATIONS if operation[1]])
def test_the_webhooks_of_others_are_not_found(api: httpx.Client, method: str, path: str) -> None:
    other = create_key_header(create_owner("other"))
    response = send_request(api, method, path, other)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert api.get(HOOKS, headers=other).json()["results"] == []


def test_a_change_changes_what_it_names(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header)
    del hook["secret"]
    fields = {
        "url": "https://other.example/",
        "events": ["book.updated"],
        "signature_form": "A",
        "description": "Theirs",
        "in_flight_limit": 1,
    }
    assert hook["key_encoding"] == "utf-8"
    for name, value in fields.items():
        response = api.patch(f"{HOOKS}/{hook['id']}", json={name: value}, headers=key_header)
        hook[name] = value
        assert (response.status_code, response.json()) == (200, hook)
    assert api.patch(f"{HOOKS}/{hook['id']}", json=hook, headers=key_header).json() == hook
    assert api.patch(f"{HOOKS}/{hook['id']}", json={}, headers=key_header).json() == hook


def test_a_change_may_come_as_a_merge_patch(api: httpx.Client, key_header: dict[str, str]) -> None:
    """A null would remove the field (RFC 7396)."""
    address = f"{HOOKS}/{create_webhook(api, key_header)['id']}"
    headers = {**key_header, "Content-Type": "application/merge-patch+json"}
    response = api.patch(address, content=b'{"description": "Theirs"}', headers=headers)
    assert (response.status_code, response.json()["description"]) == (200, "Theirs")
    assert parse_error(api.patch(address, content=b'{"url": null}', headers=headers))[2] == ["url"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"signature_form": "D"}, "signature_form"),
        ({"state": "deleted"}, "state"),
        ({"events": None}, "events"),
        ({"secret": SECRET}, "secret"),
    ],
)
def test_the_wrong_field_of_a_change_is_named(
    api: httpx.Client, key_header: dict[str, str], fields: dict[str, Any], field: str
) -> None:
    hook = create_webhook(api, key_header)
    response = api.patch(f"{HOOKS}/{hook['id']}", json=fields, headers=key_header)
    assert (response.status_code, list_fields(response)) == (422, {field})


def test_an_enabled_webhook_has_no_reason_and_no_dead_deliveries(
    api: httpx.Client, owner: User, key_header: dict[str, str]
) -> None:
    endpoint = create_made_endpoint(owner, state="disabled", reason="10 deliveries died", dead_in_a_row=10)
    before = api.get(f"{HOOKS}/{endpoint.pk}", headers=key_header).json()
    after = api.patch(f"{HOOKS}/{endpoint.pk}", json={"state": "active"}, headers=key_header).json()
    assert (before["state"], before["reason"]) == ("disabled", "10 deliveries died")
    assert after == {**before, "state": "active", "reason": ""}
    endpoint.refresh_from_db()
    assert endpoint.dead_in_a_row == 0


def test_a_deleted_webhook_is_gone_and_its_deliveries_are_kept(
    api: httpx.Client, owner: User, key_header: dict[str, str]
) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(api, endpoint)
    address = f"{HOOKS}/{endpoint.pk}"
    response = api.delete(address, headers=key_header)
    assert (response.status_code, response.content) == (204, b"")
    for path in (address, f"{address}/deliveries", f"{address}/deliveries/{delivery.pk}"):
        assert api.get(path, headers=key_header).status_code == 404
    assert api.patch(address, json={"state": "active"}, headers=key_header).status_code == 404
    assert api.get(HOOKS, headers=key_header).json()["results"] == []
    assert Delivery.objects.filter(endpoint=endpoint, endpoint__state="deleted").count() == 1


def test_a_secret_is_changed_in_two_steps(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header)
    address = f"{HOOKS}/{hook['id']}"
    first = api.post(f"{address}/secret", headers=key_header)
    second = api.post(f"{address}/secret", json={"secret": SECRET}, headers=key_header)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.headers["Cache-Control"] == "no-store"
    assert second.json() == {"secret": SECRET, "key_encoding": "utf-8"}
    assert first.json()["secret"] != SECRET
    assert (read_secret(hook["id"]), read_secret(hook["id"], "pending")) == (hook["secret"], SECRET)
    assert api.get(address, headers=key_header).json()["pending_secret"] is True
    promotion = api.post(f"{address}/secret/promote", headers=key_header)
    assert promotion.json() == api.get(address, headers=key_header).json()
    assert (promotion.status_code, promotion.json()["pending_secret"]) == (200, False)
    assert [decrypt_secret(secret.sealed) for secret in EndpointSecret.objects.all()] == [SECRET]
    assert read_secret(hook["id"]) == SECRET


@pytest.mark.parametrize(("form", "key_encoding"), [("A", "utf-8"), ("B", "utf-8"), ("C", "base64")])
def test_a_secret_says_what_its_key_is(
    api: httpx.Client, key_header: dict[str, str], form: str, key_encoding: str
) -> None:
    hook = create_webhook(api, key_header, signature_form=form)
    response = api.post(f"{HOOKS}/{hook['id']}/secret", headers=key_header)
    assert [hook["key_encoding"], response.json()["key_encoding"]] == [key_encoding] * 2


def test_a_client_may_choose_a_secret_of_form_c(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header, signature_form="C", secret=STANDARD_SECRET)
    assert hook["secret"] == STANDARD_SECRET == read_secret(hook["id"])


@pytest.mark.parametrize("secret", [SECRET, OLD_SECRET])
def test_a_webhook_of_form_c_gets_no_secret_of_another_form(
    api: httpx.Client, key_header: dict[str, str], secret: str
) -> None:
    hook = create_webhook(api, key_header, signature_form="C")
    response = api.post(f"{HOOKS}/{hook['id']}/secret", json={"secret": secret}, headers=key_header)
    message = "In form C, input should be whsec_ and the standard base64 of at least 24 bytes."
    problem = ("secret", message)
    assert (response.status_code, list_problems(response)) == (422, [problem])
    assert not EndpointSecret.objects.filter(state="pending").exists()


def test_a_new_webhook_gets_form_c_at_once(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header, signature_form="B")
    api.post(f"{HOOKS}/{hook['id']}/secret", headers=key_header)
    changed = api.patch(f"{HOOKS}/{hook['id']}", json={"signature_form": "C"}, headers=key_header).json()
    assert (changed["signature_form"], changed["key_encoding"]) == ("C", "base64")
    assert read_secret(hook["id"]) == hook["secret"]


@pytest.mark.parametrize("state", ["active", "pending"])
def test_a_webhook_with_an_old_secret_gets_form_c_after_a_new_one(
    api: httpx.Client, key_header: dict[str, str], state: str
) -> None:
    hook = create_webhook(api, key_header)
    address = f"{HOOKS}/{hook['id']}"
    api.post(f"{address}/secret", headers=key_header)
    EndpointSecret.objects.filter(state=state).update(sealed=encrypt_secret(OLD_SECRET))
    refusal = api.patch(address, json={"signature_form": "C", "description": "New"}, headers=key_header)
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (409, "CONFLICT")
    assert (Endpoint.objects.get().form, Endpoint.objects.get().description) == ("B", "")
    api.post(f"{address}/secret", headers=key_header)
    api.post(f"{address}/secret/promote", headers=key_header)
    assert api.patch(address, json={"signature_form": "C"}, headers=key_header).json()["signature_form"] == "C"


@pytest.mark.parametrize("sealed", ["nonsense", encrypt_secret(OLD_SECRET)])
def test_a_webhook_keeps_or_leaves_form_c_whatever_its_secret_is(
    api: httpx.Client, key_header: dict[str, str], sealed: str
) -> None:
    hook = create_webhook(api, key_header, signature_form="C")
    EndpointSecret.objects.update(sealed=sealed)
    for form in ("C", "B", "A"):
        response = api.patch(f"{HOOKS}/{hook['id']}", json={"signature_form": form}, headers=key_header)
        assert (response.status_code, response.json()["signature_form"]) == (200, form)


def test_without_a_pending_secret_none_is_promoted(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header)
    response = api.post(f"{HOOKS}/{hook['id']}/secret/promote", headers=key_header)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "CONFLICT")
    assert read_secret(hook["id"]) == hook["secret"]


def test_a_bad_secret_is_refused(api: httpx.Client, key_header: dict[str, str]) -> None:
    hook = create_webhook(api, key_header)
    response = api.post(f"{HOOKS}/{hook['id']}/secret", json={"secret": "short"}, headers=key_header)
    assert (response.status_code, list_fields(response)) == (422, {"secret"})
    assert EndpointSecret.objects.count() == 1


def test_a_ping_is_for_one_webhook_alone(
    api: httpx.Client,
    owner: User,
    key_header: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    create_made_endpoint(owner)
    hook = create_webhook(api, key_header, events=["book.deleted"])
    with django_capture_on_commit_callbacks() as hints:
        response = api.post(f"{HOOKS}/{hook['id']}/ping", headers=key_header)
    delivery, event = Delivery.objects.get(), Event.objects.get()
    assert (response.status_code, response.headers["Retry-After"]) == (202, "1")
    assert response.headers["Location"] == f"{HOOKS}/{hook['id']}/deliveries/{delivery.pk}"
    assert response.json() == {
        "id": delivery.pk,
        "event": str(event.uuid),
        "kind": "test.ping",
        "state": "waiting",
        "attempts": 0,
        "created_at": format_time(delivery.created_at),
        "next_at": format_time(delivery.next_at),
        "finished_at": None,
    }
    body = json.loads(bytes(event.body))
    assert (body["event"], body["data"], event.subject) == ("test.ping", {"endpoint": hook["id"]}, None)
    assert len(hints) == 1


@pytest.mark.parametrize("action", ["ping", "replay", "deliveries/{delivery}/redeliver"])
def test_a_disabled_webhook_is_sent_nothing(
    api: httpx.Client, owner: User, key_header: dict[str, str], action: str
) -> None:
    endpoint = create_made_endpoint(owner)
    path = action.format(delivery=deliver_new_book(api, endpoint).pk)
    api.patch(f"{HOOKS}/{endpoint.pk}", json={"state": "disabled"}, headers=key_header)
    span = {"events": ["*"], "after": "2026-01-01T00:00:00Z"} if action == "replay" else {}
    response = api.post(f"{HOOKS}/{endpoint.pk}/{path}", json=span, headers=key_header)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "The webhook is disabled: set its state to active first"
    assert Delivery.objects.count() == 1


def test_deliveries_are_listed_from_the_newest_on(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    endpoint = create_made_endpoint(owner)
    create_made_endpoint(owner)
    deliveries = [deliver_new_book(api, endpoint) for _ in range(5)]
    address = f"{HOOKS}/{endpoint.pk}/deliveries?limit=2"
    api.headers.update(key_header)
    pages = [[row["id"] for row in page["results"]] for page in walk_pages(api, address)]
    newest_first = [row.pk for row in reversed(deliveries)]
    assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:]]
    second = api.get(api.get(address).json()["next"])
    assert [row["id"] for row in api.get(second.json()["previous"]).json()["results"]] == newest_first[:2]
    assert second.links["prev"]["url"] == second.json()["previous"]


def test_a_delivery_shows_its_attempts_and_its_body(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(api, endpoint)
    started_at = timezone.now()
    delivery.attempts.create(started_at=started_at, milliseconds=12, status=500, answer=b"\xffno")
    delivery.attempts.create(started_at=started_at, milliseconds=9, status=None, error="It broke.", answer=b"")
    Delivery.objects.filter(pk=delivery.pk).update(state="dead", attempted=2, next_at=None, finished_at=started_at)
    summary = {
        "id": delivery.pk,
        "event": str(delivery.event.uuid),
        "kind": "book.created",
        "state": "dead",
        "attempts": 2,
        "created_at": format_time(delivery.created_at),
        "next_at": None,
        "finished_at": format_time(started_at),
    }
    attempt_log = [
        {"started_at": format_time(started_at), "milliseconds": 12, "status": 500, "error": "", "answer": "�no"},
        {
            "started_at": format_time(started_at),
            "milliseconds": 9,
            "status": None,
            "error": "It broke.",
            "answer": "",
        },
    ]
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    assert api.get(address, headers=key_header).json()["results"] == [summary]
    response = api.get(f"{address}/{delivery.pk}", headers=key_header)
    assert response.json() == {**summary, "attempt_log": attempt_log, "body": json.loads(bytes(delivery.event.body))}
    assert bytes(delivery.event.body) in response.content


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=waiting", ["book.deleted", "book.created"]),
        ("state=delivered", ["book.updated"]),
        ("kind=book.created", ["book.created"]),
        ("kind=test.ping", []),
        ("state=waiting&kind=book.deleted", ["book.deleted"]),
    ],
)
def test_deliveries_are_found_by_state_and_kind(
    api: httpx.Client, owner: User, key_header: dict[str, str], query: str, expected: list[str]
) -> None:
    endpoint = create_made_endpoint(owner)
    book = api.post("/api/v2/books", json=build_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    Delivery.objects.filter(event__kind="book.updated").update(state="delivered")
    api.delete(f"/api/v2/books/{book['id']}")
    rows = api.get(f"{HOOKS}/{endpoint.pk}/deliveries?{query}", headers=key_header).json()["results"]
    assert [row["kind"] for row in rows] == expected


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("state=gone", 422, "state"),
        ("kind=*", 422, "kind"),
        ("cursor=first", 422, "cursor"),
        ("cursor=0", 422, "cursor"),
        ("limit=501", 422, "limit"),
        ("kinds=book.created", 400, "kinds"),
    ],
)
def test_the_wrong_parameter_of_a_query_is_named(
    api: httpx.Client, owner: User, key_header: dict[str, str], query: str, status: int, field: str
) -> None:
    response = api.get(f"{HOOKS}/{create_made_endpoint(owner).pk}/deliveries?{query}", headers=key_header)
    assert (response.status_code, list_fields(response)) == (status, {field})


def test_a_list_of_any_length_takes_the_same_number_of_queries(
    api: httpx.Client, owner: User, key_header: dict[str, str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    endpoint = create_made_endpoint(owner)
    deliver_new_book(api, endpoint)
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    # The first use of a key in a minute is stored.
    api.get(HOOKS, headers=key_header)
    with django_assert_num_queries(2):
        api.get(HOOKS, headers=key_header)
    with django_assert_num_queries(3):
        api.get(address, headers=key_header)
    for _ in range(10):
        create_made_endpoint(owner)
        deliver_new_book(api, endpoint)
    with django_assert_num_queries(2):
        api.get(HOOKS, headers=key_header)
    with django_assert_num_queries(3):
        api.get(address, headers=key_header)


def test_a_delivery_can_be_sent_again(
    api: httpx.Client,
    owner: User,
    key_header: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(api, endpoint)
    Delivery.objects.update(state="dead", attempted=5, next_at=None)
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    with django_capture_on_commit_callbacks() as hints:
        responses = [api.post(f"{address}/{delivery.pk}/redeliver", headers=key_header) for _ in range(2)]
    assert [response.status_code for response in responses] == [202, 202]
    assert [response.json() for response in reversed(responses)] == api.get(address, headers=key_header).json()[
        "results"
    ][:2]
    for replay, response in enumerate(responses, 1):
        redelivery = Delivery.objects.get(pk=response.json()["id"])
        assert (redelivery.event, redelivery.endpoint, redelivery.replay) == (delivery.event, endpoint, replay)
        assert (redelivery.state, redelivery.attempted) == ("waiting", 0)
        assert redelivery.next_at is not None
        assert response.headers["Location"] == f"{address}/{redelivery.pk}"
    assert len(hints) == 2


def test_a_delivery_belongs_to_its_webhook(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    endpoint, other = create_made_endpoint(owner), create_made_endpoint(owner)
    delivery = deliver_new_book(api, endpoint)
    address = f"{HOOKS}/{other.pk}/deliveries/{delivery.pk}"
    assert api.get(address, headers=key_header).status_code == 404
    assert api.post(f"{address}/redeliver", headers=key_header).status_code == 404
    assert Delivery.objects.count() == 2


def test_past_events_can_be_replayed(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    deliver_new_book(api, create_endpoint(create_owner("other")))
    endpoint = create_made_endpoint(owner)
    span = {"events": ["*"], "after": format_time(timezone.now() - timedelta(hours=1)), "before": None}
    response = api.post(f"{HOOKS}/{endpoint.pk}/replay", json=span, headers=key_header)
    assert (response.status_code, response.json()) == (202, {"deliveries": 1})
    assert Delivery.objects.get(endpoint=endpoint).event.kind == "book.created"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"events": []}, "events"),
        ({"events": ["test.ping"]}, "events"),
        ({"after": "2026-01-31"}, "after"),
        ({"after": None}, "after"),
        ({"before": "now"}, "before"),
        ({"before": "2026-01-01T00:00:00Z"}, "before"),
        ({"since": "2026-01-31T00:00:00Z"}, "since"),
    ],
)
def test_the_wrong_field_of_a_replay_is_named(
    api: httpx.Client, owner: User, key_header: dict[str, str], fields: dict[str, Any], field: str
) -> None:
    span = {"events": ["*"], "after": "2026-01-01T00:00:00Z", **fields}
    response = api.post(f"{HOOKS}/{create_made_endpoint(owner).pk}/replay", json=span, headers=key_header)
    assert (response.status_code, list_fields(response)) == (422, {field})


@pytest.mark.parametrize("webhook_id", ["0", "x", "9" * 30, "9" * 5000, "-1"])
def test_unknown_and_malformed_ids_are_not_found(
    api: httpx.Client, key_header: dict[str, str], webhook_id: str
) -> None:
    response = api.get(f"{HOOKS}/{webhook_id}", headers=key_header)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_unknown_parameters_and_methods_are_refused(api: httpx.Client, owner: User, key_header: dict[str, str]) -> None:
    hook = f"{HOOKS}/{create_made_endpoint(owner).pk}"
    addresses = [HOOKS, hook, f"{hook}/secret", f"{hook}/secret/promote", f"{hook}/ping", f"{hook}/replay"]
    methods = ["GET", "PATCH", "POST", "POST", "POST", "POST"]
    for method, address in zip(methods, addresses, strict=True):
        assert api.request(method, f"{address}?limit=5", headers=key_header).status_code == 400
        assert api.put(address, json={}, headers=key_header).status_code == 405
    assert api.options(hook, headers=key_header).headers["Allow"] == "GET, PATCH, DELETE, HEAD, OPTIONS"
