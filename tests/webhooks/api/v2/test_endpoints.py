"""Webhooks over HTTP, as the people whose they are make, try and follow them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks, Settings

from tests.support import oauth_flows
from tests.support.books import new_book
from tests.support.endpoints import endpoint, key_for, listener
from webhooks import endpoints
from webhooks.encryption import decrypt
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event

HOOKS = "/api/v2/webhooks"
URL = "https://receiver.example/hook"
MEMBERS = {"url": URL, "events": ["*"]}
EVERY = [
    ("GET", ""),
    ("POST", ""),
    *[(method, "/{id}") for method in ("GET", "PATCH", "DELETE")],
    *[("POST", f"/{{id}}/{action}") for action in ("secret", "secret/promote", "ping", "replay")],
    ("GET", "/{id}/deliveries"),
    ("GET", "/{id}/deliveries/{delivery}"),
    ("POST", "/{id}/deliveries/{delivery}/redeliver"),
]
SECRET = "a secret of the client's own, ~!"


@pytest.fixture
def owner(db: None) -> User:
    return listener()


@pytest.fixture
def by(owner: User) -> dict[str, str]:
    return key_for(owner)


def made(api: httpx.Client, by: dict[str, str], **members: Any) -> dict[str, Any]:
    response = api.post(HOOKS, json={**MEMBERS, **members}, headers=by)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def delivered(api: httpx.Client, listening: Endpoint) -> Delivery:
    """What a new book sends there."""
    api.post("/api/v2/books", json=new_book())
    return Delivery.objects.filter(endpoint=listening).latest("pk")


def secret_of(webhook_id: int, state: str = "active") -> str:
    return decrypt(EndpointSecret.objects.get(endpoint=webhook_id, state=state).sealed)


def wire(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def named(response: httpx.Response) -> set[str]:
    return {detail["field"] for detail in response.json()["error"]["details"]}


def test_a_new_webhook_shows_its_secret_once(api: httpx.Client, by: dict[str, str]) -> None:
    members = {
        "url": URL,
        "events": ["book.created", "book.deleted"],
        "signature_form": "A",
        "description": "Ours",
        "in_flight_limit": 7,
    }
    response = api.post(HOOKS, json=members, headers=by)
    hook = response.json()
    stored = Endpoint.objects.get()
    assert response.status_code == 201
    assert response.headers["Location"] == f"{HOOKS}/{stored.pk}"
    assert response.headers["Cache-Control"] == "no-store"
    assert hook == {
        "id": stored.pk,
        **members,
        "state": "active",
        "reason": "",
        "created_at": wire(stored.created_at),
        "pending_secret": False,
        "secret": hook["secret"],
    }
    assert hook["secret"] == secret_of(hook["id"])
    del hook["secret"]
    assert api.get(response.headers["Location"], headers=by).json() == hook
    assert api.get(HOOKS, headers=by).json() == {"results": [hook], "next": None, "previous": None}


def test_what_is_not_said_has_a_default(api: httpx.Client, by: dict[str, str]) -> None:
    defaults = {"events": ["*"], "signature_form": "B", "description": "", "in_flight_limit": 50, "state": "active"}
    assert made(api, by).items() >= defaults.items()


def test_a_client_may_bring_the_secret(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by, secret=SECRET)
    assert hook["secret"] == SECRET == secret_of(hook["id"])
    assert SECRET not in str(EndpointSecret.objects.values())


def test_a_new_webhook_is_sent_what_happens_next(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by, events=["book.created"])
    assert delivered(api, Endpoint.objects.get(pk=hook["id"])).event.kind == "book.created"


@pytest.mark.parametrize(
    ("members", "field"),
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
        ({"signature_form": "C"}, "signature_form"),
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
def test_what_is_wrong_with_a_body_is_named(
    api: httpx.Client, by: dict[str, str], members: dict[str, Any], field: str
) -> None:
    response = api.post(HOOKS, json={**MEMBERS, **members}, headers=by)
    assert (response.status_code, named(response)) == (422, {field})
    assert not Endpoint.objects.exists()


@pytest.mark.parametrize("member", ["signature_form", "url", "description", "events"])
def test_half_a_character_is_refused(api: httpx.Client, by: dict[str, str], member: str) -> None:
    body = json.dumps({**MEMBERS, member: "\ud800"}).encode()
    response = api.post(HOOKS, content=body, headers={**by, "Content-Type": "application/json"})
    assert (response.status_code, named(response)) == (422, {member})


def test_receivers_inside_may_be_allowed(api: httpx.Client, by: dict[str, str], settings: Settings) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    assert made(api, by, url="http://127.0.0.1:9000/")["url"] == "http://127.0.0.1:9000/"


def test_nobody_has_more_than_a_hundred(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    for _ in range(endpoints.MAX_ENDPOINTS_PER_USER - 1):
        endpoint(owner)
    gone = made(api, by)
    response = api.post(HOOKS, json=MEMBERS, headers=by)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "You have 100 webhooks: delete one first"
    api.delete(f"{HOOKS}/{gone['id']}", headers=by)
    made(api, by)


def sent(api: httpx.Client, method: str, path: str, by: dict[str, str] | None) -> httpx.Response:
    """What somebody is answered about a webhook of the listener's."""
    listening = endpoint()
    address = HOOKS + path.format(id=listening.pk, delivery=delivered(api, listening).pk)
    return api.request(method, address, json={} if method in ("POST", "PATCH") else None, headers=by)


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_without_a_credential_nothing_is_shown_whatever_is_open(api: httpx.Client, method: str, path: str) -> None:
    response = sent(api, method, path, None)
    assert (response.status_code, response.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="Library API"'


@pytest.mark.parametrize(("method", "path"), EVERY)
def test_other_scopes_do_not_do(api: httpx.Client, method: str, path: str) -> None:
    response = sent(api, method, path, key_for(oauth_flows.librarian(), "read write"))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "FORBIDDEN")
    assert response.headers["WWW-Authenticate"] == (
        'Bearer realm="Library API", error="insufficient_scope", scope="webhooks"'
    )


@pytest.mark.parametrize(("method", "path"), [one for one in EVERY if one[1]])
def test_those_of_others_are_not_there(api: httpx.Client, method: str, path: str) -> None:
    other = key_for(listener("other"))
    response = sent(api, method, path, other)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert api.get(HOOKS, headers=other).json()["results"] == []


def test_a_change_changes_what_it_names(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by)
    del hook["secret"]
    members = {
        "url": "https://other.example/",
        "events": ["book.updated"],
        "signature_form": "A",
        "description": "Theirs",
        "in_flight_limit": 1,
    }
    for name, value in members.items():
        changed = api.patch(f"{HOOKS}/{hook['id']}", json={name: value}, headers=by)
        hook[name] = value
        assert (changed.status_code, changed.json()) == (200, hook)
    assert api.patch(f"{HOOKS}/{hook['id']}", json=hook, headers=by).json() == hook
    assert api.patch(f"{HOOKS}/{hook['id']}", json={}, headers=by).json() == hook


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"url": "https://10.0.0.1/"}, "url"),
        ({"state": "deleted"}, "state"),
        ({"events": None}, "events"),
        ({"secret": SECRET}, "secret"),
    ],
)
def test_a_change_is_held_to_the_same_rules(
    api: httpx.Client, by: dict[str, str], members: dict[str, Any], field: str
) -> None:
    hook = made(api, by)
    response = api.patch(f"{HOOKS}/{hook['id']}", json=members, headers=by)
    assert (response.status_code, named(response)) == (422, {field})


def test_a_disabled_webhook_begins_afresh_when_it_is_enabled(
    api: httpx.Client, owner: User, by: dict[str, str]
) -> None:
    listening = endpoint(owner, state="disabled", reason="10 deliveries died", dead_in_a_row=10)
    before = api.get(f"{HOOKS}/{listening.pk}", headers=by).json()
    after = api.patch(f"{HOOKS}/{listening.pk}", json={"state": "active"}, headers=by).json()
    assert (before["state"], before["reason"]) == ("disabled", "10 deliveries died")
    assert after == {**before, "state": "active", "reason": ""}
    listening.refresh_from_db()
    assert listening.dead_in_a_row == 0


def test_a_deleted_webhook_is_gone_and_its_deliveries_are_kept(
    api: httpx.Client, owner: User, by: dict[str, str]
) -> None:
    listening = endpoint(owner)
    delivery = delivered(api, listening)
    address = f"{HOOKS}/{listening.pk}"
    deleted = api.delete(address, headers=by)
    assert (deleted.status_code, deleted.content) == (204, b"")
    for gone in (address, f"{address}/deliveries", f"{address}/deliveries/{delivery.pk}"):
        assert api.get(gone, headers=by).status_code == 404
    assert api.patch(address, json={"state": "active"}, headers=by).status_code == 404
    assert api.get(HOOKS, headers=by).json()["results"] == []
    assert Delivery.objects.filter(endpoint=listening, endpoint__state="deleted").count() == 1


def test_a_secret_is_changed_in_two_steps(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by)
    address = f"{HOOKS}/{hook['id']}"
    first = api.post(f"{address}/secret", headers=by)
    again = api.post(f"{address}/secret", json={"secret": SECRET}, headers=by)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.headers["Cache-Control"] == "no-store"
    assert again.json() == {"secret": SECRET}
    assert first.json()["secret"] != SECRET
    assert (secret_of(hook["id"]), secret_of(hook["id"], "pending")) == (hook["secret"], SECRET)
    assert api.get(address, headers=by).json()["pending_secret"] is True
    promoted = api.post(f"{address}/secret/promote", headers=by)
    assert promoted.json() == api.get(address, headers=by).json()
    assert (promoted.status_code, promoted.json()["pending_secret"]) == (200, False)
    assert [decrypt(one.sealed) for one in EndpointSecret.objects.all()] == [SECRET]
    assert secret_of(hook["id"]) == SECRET


def test_without_a_pending_secret_none_is_promoted(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by)
    response = api.post(f"{HOOKS}/{hook['id']}/secret/promote", headers=by)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "CONFLICT")
    assert secret_of(hook["id"]) == hook["secret"]


def test_a_bad_secret_is_refused(api: httpx.Client, by: dict[str, str]) -> None:
    hook = made(api, by)
    response = api.post(f"{HOOKS}/{hook['id']}/secret", json={"secret": "short"}, headers=by)
    assert (response.status_code, named(response)) == (422, {"secret"})
    assert EndpointSecret.objects.count() == 1


def test_a_ping_is_for_one_webhook_alone(
    api: httpx.Client,
    owner: User,
    by: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    endpoint(owner)
    hook = made(api, by, events=["book.deleted"])
    with django_capture_on_commit_callbacks() as hints:
        response = api.post(f"{HOOKS}/{hook['id']}/ping", headers=by)
    delivery, event = Delivery.objects.get(), Event.objects.get()
    assert response.status_code == 202
    assert response.headers["Location"] == f"{HOOKS}/{hook['id']}/deliveries/{delivery.pk}"
    assert response.json() == {
        "id": delivery.pk,
        "event": str(event.uuid),
        "kind": "test.ping",
        "state": "waiting",
        "attempts": 0,
        "created_at": wire(delivery.created_at),
        "next_at": wire(delivery.next_at),
        "finished_at": None,
    }
    body = json.loads(bytes(event.body))
    assert (body["event"], body["data"], event.subject) == ("test.ping", {"endpoint": hook["id"]}, None)
    assert len(hints) == 1


@pytest.mark.parametrize("action", ["ping", "replay", "deliveries/{delivery}/redeliver"])
def test_a_disabled_webhook_is_sent_nothing(api: httpx.Client, owner: User, by: dict[str, str], action: str) -> None:
    listening = endpoint(owner)
    path = action.format(delivery=delivered(api, listening).pk)
    api.patch(f"{HOOKS}/{listening.pk}", json={"state": "disabled"}, headers=by)
    span = {"events": ["*"], "after": "2026-01-01T00:00:00Z"} if action == "replay" else {}
    response = api.post(f"{HOOKS}/{listening.pk}/{path}", json=span, headers=by)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "The webhook is disabled: set its state to active first"
    assert Delivery.objects.count() == 1


def test_deliveries_are_listed_from_the_newest_on(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    listening = endpoint(owner)
    endpoint(owner)
    deliveries = [delivered(api, listening) for _ in range(5)]
    address: str | None = f"{settings.PUBLIC_URL}{HOOKS}/{listening.pk}/deliveries?limit=2"
    found: list[int] = []
    while address:
        page = api.get(address, headers=by).json()
        assert page["previous"] is None
        found += [one["id"] for one in page["results"]]
        address = page["next"]
    assert found == [one.pk for one in reversed(deliveries)]


def test_a_delivery_tells_what_came_of_it(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    listening = endpoint(owner)
    delivery = delivered(api, listening)
    started = timezone.now()
    delivery.attempts.create(started_at=started, milliseconds=12, status=500, answer=b"\xffno")
    delivery.attempts.create(started_at=started, milliseconds=9, status=None, error="It hung up.", answer=b"")
    Delivery.objects.filter(pk=delivery.pk).update(state="dead", attempted=2, next_at=None, finished_at=started)
    short = {
        "id": delivery.pk,
        "event": str(delivery.event.uuid),
        "kind": "book.created",
        "state": "dead",
        "attempts": 2,
        "created_at": wire(delivery.created_at),
        "next_at": None,
        "finished_at": wire(started),
    }
    log = [
        {"started_at": wire(started), "milliseconds": 12, "status": 500, "error": "", "answer": "�no"},
        {"started_at": wire(started), "milliseconds": 9, "status": None, "error": "It hung up.", "answer": ""},
    ]
    address = f"{HOOKS}/{listening.pk}/deliveries"
    assert api.get(address, headers=by).json()["results"] == [short]
    whole = api.get(f"{address}/{delivery.pk}", headers=by)
    assert whole.json() == {**short, "attempt_log": log, "body": json.loads(bytes(delivery.event.body))}
    assert bytes(delivery.event.body) in whole.content


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
    api: httpx.Client, owner: User, by: dict[str, str], query: str, expected: list[str]
) -> None:
    listening = endpoint(owner)
    book = api.post("/api/v2/books", json=new_book()).json()
    api.patch(f"/api/v2/books/{book['id']}", json={"year": 1})
    Delivery.objects.filter(event__kind="book.updated").update(state="delivered")
    api.delete(f"/api/v2/books/{book['id']}")
    found = api.get(f"{HOOKS}/{listening.pk}/deliveries?{query}", headers=by).json()["results"]
    assert [one["kind"] for one in found] == expected


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
def test_what_is_wrong_with_a_query_is_named(
    api: httpx.Client, owner: User, by: dict[str, str], query: str, status: int, field: str
) -> None:
    response = api.get(f"{HOOKS}/{endpoint(owner).pk}/deliveries?{query}", headers=by)
    assert (response.status_code, named(response)) == (status, {field})


def test_a_list_costs_the_same_however_long_it_is(
    api: httpx.Client, owner: User, by: dict[str, str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    listening = endpoint(owner)
    delivered(api, listening)
    address = f"{HOOKS}/{listening.pk}/deliveries"
    # The first use of a key in a minute is noted.
    api.get(HOOKS, headers=by)
    with django_assert_num_queries(2):
        api.get(HOOKS, headers=by)
    with django_assert_num_queries(3):
        api.get(address, headers=by)
    for _ in range(10):
        endpoint(owner)
        delivered(api, listening)
    with django_assert_num_queries(2):
        api.get(HOOKS, headers=by)
    with django_assert_num_queries(3):
        api.get(address, headers=by)


def test_a_delivery_can_be_sent_again(
    api: httpx.Client,
    owner: User,
    by: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    listening = endpoint(owner)
    delivery = delivered(api, listening)
    Delivery.objects.update(state="dead", attempted=5, next_at=None)
    address = f"{HOOKS}/{listening.pk}/deliveries"
    with django_capture_on_commit_callbacks() as hints:
        answers = [api.post(f"{address}/{delivery.pk}/redeliver", headers=by) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert [answer.json() for answer in reversed(answers)] == api.get(address, headers=by).json()["results"][:2]
    for replay, answer in enumerate(answers, 1):
        again = Delivery.objects.get(pk=answer.json()["id"])
        assert (again.event, again.endpoint, again.replay) == (delivery.event, listening, replay)
        assert (again.state, again.attempted) == ("waiting", 0)
        assert again.next_at is not None
        assert answer.headers["Location"] == f"{address}/{again.pk}"
    assert len(hints) == 2


def test_a_delivery_belongs_to_its_webhook(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    listening, other = endpoint(owner), endpoint(owner)
    delivery = delivered(api, listening)
    wrong = f"{HOOKS}/{other.pk}/deliveries/{delivery.pk}"
    assert api.get(wrong, headers=by).status_code == 404
    assert api.post(f"{wrong}/redeliver", headers=by).status_code == 404
    assert Delivery.objects.count() == 2


def test_what_was_missed_can_be_replayed(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    delivered(api, endpoint(listener("other")))
    listening = endpoint(owner)
    span = {"events": ["*"], "after": wire(timezone.now() - timedelta(hours=1)), "before": None}
    response = api.post(f"{HOOKS}/{listening.pk}/replay", json=span, headers=by)
    assert (response.status_code, response.json()) == (202, {"deliveries": 1})
    assert Delivery.objects.get(endpoint=listening).event.kind == "book.created"


@pytest.mark.parametrize(
    ("members", "field"),
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
def test_what_is_wrong_with_a_replay_is_named(
    api: httpx.Client, owner: User, by: dict[str, str], members: dict[str, Any], field: str
) -> None:
    span = {"events": ["*"], "after": "2026-01-01T00:00:00Z", **members}
    response = api.post(f"{HOOKS}/{endpoint(owner).pk}/replay", json=span, headers=by)
    assert (response.status_code, named(response)) == (422, {field})


@pytest.mark.parametrize("webhook_id", ["0", "x", "9" * 30, "9" * 5000, "-1"])
def test_no_id_leads_to_a_failure(api: httpx.Client, by: dict[str, str], webhook_id: str) -> None:
    response = api.get(f"{HOOKS}/{webhook_id}", headers=by)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_unknown_parameters_and_methods_are_refused(api: httpx.Client, owner: User, by: dict[str, str]) -> None:
    one = f"{HOOKS}/{endpoint(owner).pk}"
    addresses = [HOOKS, one, f"{one}/secret", f"{one}/secret/promote", f"{one}/ping", f"{one}/replay"]
    methods = ["GET", "PATCH", "POST", "POST", "POST", "POST"]
    for method, address in zip(methods, addresses, strict=True):
        assert api.request(method, f"{address}?limit=5", headers=by).status_code == 400
        assert api.put(address, json={}, headers=by).status_code == 405
    assert api.options(one, headers=by).headers["Allow"] == "GET, PATCH, DELETE, HEAD, OPTIONS"
