"""Webhooks over HTTP, as their owners create, test and follow them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.endpoints import (
    OLD_SECRET,
    create_endpoint,
    create_made_endpoint,
    create_owner,
    publish_event,
)
from tests.support.oauth_flows import create_key_header
from tests.support.pages import parse_error, walk_pages
from webhooks import endpoints
from webhooks.encryption import decrypt_secret, encrypt_secret
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event
from webhooks.outbox import format_event_time
from webhooks.ssrf import INVALID_URL_MESSAGE, NOT_PUBLIC_MESSAGE
from webhooks.stream import StreamCursor

HOOKS, EVENTS = "/api/v2/webhooks", "/api/v2/events"
URL = "https://receiver.example/hook"
FIELDS = {"url": URL, "events": ["*"]}
SPAN = {"events": ["*"], "after": "2026-01-01T00:00:00Z"}
SECRET = "a secret of the client's own, ~!"
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def owner(db: None) -> User:
    return create_owner()


@pytest.fixture(autouse=True)
def key_of_the_owner(api: httpx.Client, owner: User) -> None:
    """Every request has it."""
    api.headers.update(create_key_header(owner, "webhooks"))


def create_webhook(api: httpx.Client, **fields: Any) -> dict[str, Any]:
    response = api.post(HOOKS, json={**FIELDS, **fields})
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def deliver_new_book(endpoint: Endpoint) -> Delivery:
    """The delivery of a new book to the endpoint."""
    create_book()
    return Delivery.objects.filter(endpoint=endpoint).latest("pk")


def read_secret(webhook_id: int, state: str = "active") -> str:
    return decrypt_secret(EndpointSecret.objects.get(endpoint=webhook_id, state=state).sealed)


def list_problems(response: httpx.Response) -> list[tuple[str, str]]:
    return [(detail["field"], detail["message"]) for detail in response.json()["error"]["details"]]


def list_fields(response: httpx.Response) -> set[str]:
    return {field for field, _ in list_problems(response)}


def test_a_new_webhook_shows_its_secret_once(api: httpx.Client) -> None:
    fields = {
        "url": URL,
        "events": ["book.created", "book.deleted"],
        "signature_form": "A",
        "description": "Ours",
        "in_flight_limit": 7,
    }
    response = api.post(HOOKS, json=fields)
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
        "created_at": format_event_time(stored.created_at),
        "pending_secret": False,
        "key_encoding": "utf-8",
        "secret": hook["secret"],
    }
    assert hook["secret"] == read_secret(hook["id"])
    del hook["secret"]
    assert api.get(response.headers["Location"]).json() == hook
    assert api.get(HOOKS).json() == {"results": [hook], "next": None, "previous": None}


def test_a_client_may_leave_fields_out_or_choose_the_secret(api: httpx.Client) -> None:
    defaults = {"events": ["*"], "signature_form": "B", "description": "", "in_flight_limit": 50, "state": "active"}
    assert create_webhook(api).items() >= defaults.items()
    hook = create_webhook(api, secret=SECRET)
    assert hook["secret"] == SECRET == read_secret(hook["id"])
    assert SECRET not in str(EndpointSecret.objects.values())


WRONG_FIELDS: dict[str, list[Any]] = {
    "url": ["", "http://", "ftp://receiver.example/", "https://127.0.0.1/", 7, None, "\ud800"],
    "events": [[], ["book.burned"], ["*", "book.created"], ["book.created"] * 2, ["test.ping"], [["*"]], "*"],
    "signature_form": ["D", "\ud800"],
    "description": ["a" * 201, "\0", "\ud800"],
    "in_flight_limit": [0, 1001, "5"],
    "secret": ["a" * 23, "a" * 201, "a" * 24 + "\n", "é" * 24, 10**30],
    "kinds": [["*"]],
}


def test_the_wrong_field_of_a_body_is_named(api: httpx.Client) -> None:
    hook = create_webhook(api)
    for field, value in ((field, value) for field, values in WRONG_FIELDS.items() for value in values):
        # A lone surrogate can be sent only as an escape of JSON.
        content = json.dumps({**FIELDS, field: value}).encode()
        response = api.post(HOOKS, content=content, headers={"Content-Type": "application/json"})
        assert (response.status_code, list_fields(response)) == (422, {field}), (field, value)
    for url in ("", "http://", "ftp://receiver.example/"):
        assert list_problems(api.post(HOOKS, json={**FIELDS, "url": url})) == [("url", INVALID_URL_MESSAGE)]
    for secret in (SECRET, OLD_SECRET):
        response = api.post(HOOKS, json={**FIELDS, "signature_form": "C", "secret": secret})
        assert (response.status_code, list_fields(response)) == (422, {"secret"})
    changes = {"url": "https://10.0.0.1/", "signature_form": "D", "state": "deleted", "events": None, "secret": SECRET}
    for field, value in changes.items():
        response = api.patch(f"{HOOKS}/{hook['id']}", json={field: value})
        assert (response.status_code, list_fields(response)) == (422, {field}), field
    assert Endpoint.objects.count() == 1


def test_private_receivers_must_be_allowed(api: httpx.Client, settings: Settings) -> None:
    for url in ("http://127.0.0.1:9000/", "https://10.0.0.1/", "http://receiver.example/"):
        [(field, message)] = list_problems(api.post(HOOKS, json={**FIELDS, "url": url}))
        assert (field, message) == ("url", NOT_PUBLIC_MESSAGE)
        assert "WEBHOOKS_ALLOW_PRIVATE=true" in message
    settings.WEBHOOKS_ALLOW_PRIVATE = True
    assert create_webhook(api, url="http://127.0.0.1:9000/")["url"] == "http://127.0.0.1:9000/"


def test_nobody_has_more_than_a_hundred(api: httpx.Client, owner: User) -> None:
    Endpoint.objects.bulk_create(
        Endpoint(owner=owner, url=URL, created_at=timezone.now()) for _ in range(endpoints.MAX_ENDPOINTS_PER_USER - 1)
    )
    hook = create_webhook(api)
    response = api.post(HOOKS, json=FIELDS)
    assert response.status_code == 409
    assert response.json()["error"]["message"] == "You have 100 webhooks: delete one first"
    api.delete(f"{HOOKS}/{hook['id']}")
    create_webhook(api)


def test_a_change_changes_what_it_names(api: httpx.Client) -> None:
    hook = create_webhook(api)
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
        response = api.patch(f"{HOOKS}/{hook['id']}", json={name: value})
        hook[name] = value
        assert (response.status_code, response.json()) == (200, hook)
    assert api.patch(f"{HOOKS}/{hook['id']}", json=hook).json() == hook
    assert api.patch(f"{HOOKS}/{hook['id']}", json={}).json() == hook
    # A null would remove the field (RFC 7396).
    headers = {"Content-Type": "application/merge-patch+json"}
    assert api.patch(f"{HOOKS}/{hook['id']}", content=b'{"description": "Ours"}', headers=headers).is_success
    null = api.patch(f"{HOOKS}/{hook['id']}", content=b'{"url": null}', headers=headers)
    assert parse_error(null)[2] == ["url"]


def test_a_deleted_webhook_is_gone_and_its_deliveries_are_kept(api: httpx.Client, owner: User) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(endpoint)
    address = f"{HOOKS}/{endpoint.pk}"
    response = api.delete(address)
    assert (response.status_code, response.content) == (204, b"")
    for path in (address, f"{address}/deliveries", f"{address}/deliveries/{delivery.pk}"):
        assert api.get(path).status_code == 404
    assert api.patch(address, json={"state": "active"}).status_code == 404
    assert api.get(HOOKS).json()["results"] == []
    assert Delivery.objects.filter(endpoint=endpoint, endpoint__state="deleted").count() == 1


def test_a_secret_is_changed_in_two_steps(api: httpx.Client) -> None:
    hook = create_webhook(api)
    address = f"{HOOKS}/{hook['id']}"
    first = api.post(f"{address}/secret")
    second = api.post(f"{address}/secret", json={"secret": SECRET})
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.headers["Cache-Control"] == "no-store"
    assert second.json() == {"secret": SECRET, "key_encoding": "utf-8"}
    assert first.json()["secret"] != SECRET
    assert (read_secret(hook["id"]), read_secret(hook["id"], "pending")) == (hook["secret"], SECRET)
    assert api.get(address).json()["pending_secret"] is True
    promotion = api.post(f"{address}/secret/promote")
    assert promotion.json() == api.get(address).json()
    assert (promotion.status_code, promotion.json()["pending_secret"]) == (200, False)
    assert [decrypt_secret(secret.sealed) for secret in EndpointSecret.objects.all()] == [SECRET]
    assert read_secret(hook["id"]) == SECRET
    # Without a pending secret none is promoted.
    assert parse_error(api.post(f"{address}/secret/promote"))[:2] == (409, "CONFLICT")


def test_a_webhook_gets_no_secret_that_its_form_cannot_use(api: httpx.Client) -> None:
    message = "In form C, input should be whsec_ and the standard base64 of at least 24 bytes."
    for form, secret, expected in (("C", SECRET, message), ("C", OLD_SECRET, message), ("B", "short", None)):
        hook = create_webhook(api, signature_form=form)
        response = api.post(f"{HOOKS}/{hook['id']}/secret", json={"secret": secret})
        [(field, problem)] = list_problems(response)
        assert (response.status_code, field, problem) == (422, "secret", expected or problem)
    assert not EndpointSecret.objects.filter(state="pending").exists()


def test_a_webhook_with_an_old_secret_gets_form_c_after_a_new_one(api: httpx.Client) -> None:
    hook = create_webhook(api)
    address, secrets = f"{HOOKS}/{hook['id']}", EndpointSecret.objects.filter(endpoint=hook["id"])
    for state in ("active", "pending"):
        api.post(f"{address}/secret")
        secrets.filter(state=state).update(sealed=encrypt_secret(OLD_SECRET))
        refusal = api.patch(address, json={"signature_form": "C", "description": "New"})
        assert parse_error(refusal)[:2] == (409, "CONFLICT"), state
        assert (Endpoint.objects.get().form, Endpoint.objects.get().description) == ("B", "")
        api.post(f"{address}/secret")
        api.post(f"{address}/secret/promote")
    assert api.patch(address, json={"signature_form": "C"}).json()["signature_form"] == "C"


def test_a_new_webhook_gets_form_c_at_once_and_keeps_or_leaves_it_whatever_its_secret_is(api: httpx.Client) -> None:
    hook = create_webhook(api, signature_form="B", secret=STANDARD_SECRET)
    added = api.post(f"{HOOKS}/{hook['id']}/secret").json()
    assert [hook["key_encoding"], added["key_encoding"]] == ["utf-8"] * 2
    changed = api.patch(f"{HOOKS}/{hook['id']}", json={"signature_form": "C"}).json()
    assert (changed["signature_form"], changed["key_encoding"]) == ("C", "base64")
    assert read_secret(hook["id"]) == hook["secret"] == STANDARD_SECRET
    added = api.post(f"{HOOKS}/{hook['id']}/secret").json()
    assert added["key_encoding"] == "base64"
    for form, sealed in (("C", "nonsense"), ("C", encrypt_secret(OLD_SECRET)), ("B", encrypt_secret(OLD_SECRET))):
        EndpointSecret.objects.update(sealed=sealed)
        response = api.patch(f"{HOOKS}/{hook['id']}", json={"signature_form": form})
        assert (response.status_code, response.json()["signature_form"]) == (200, form)


def test_a_ping_is_for_one_webhook_alone(api: httpx.Client, owner: User) -> None:
    create_made_endpoint(owner)
    hook = create_webhook(api, events=["book.deleted"])
    response = api.post(f"{HOOKS}/{hook['id']}/ping")
    delivery, event = Delivery.objects.get(), Event.objects.get()
    assert delivery.next_at
    assert (response.status_code, response.headers["Retry-After"]) == (202, "1")
    assert response.headers["Location"] == f"{HOOKS}/{hook['id']}/deliveries/{delivery.pk}"
    assert response.json() == {
        "id": delivery.pk,
        "event": str(event.uuid),
        "kind": "test.ping",
        "state": "waiting",
        "attempts": 0,
        "created_at": format_event_time(delivery.created_at),
        "next_at": format_event_time(delivery.next_at),
        "finished_at": None,
    }
    body = json.loads(bytes(event.body))
    assert (body["event"], body["data"], event.subject) == ("test.ping", {"endpoint": hook["id"]}, None)


def test_a_disabled_webhook_is_sent_nothing(api: httpx.Client, owner: User) -> None:
    endpoint = create_made_endpoint(owner)
    redelivery = f"deliveries/{deliver_new_book(endpoint).pk}/redeliver"
    api.patch(f"{HOOKS}/{endpoint.pk}", json={"state": "disabled"})
    for path, body in (("ping", {}), ("replay", SPAN), (redelivery, {})):
        response = api.post(f"{HOOKS}/{endpoint.pk}/{path}", json=body)
        assert response.status_code == 409
        assert response.json()["error"]["message"] == "The webhook is disabled: set its state to active first"
    assert Delivery.objects.count() == 1


def test_deliveries_are_listed_from_the_newest_on(api: httpx.Client, owner: User) -> None:
    endpoint = create_made_endpoint(owner)
    create_made_endpoint(owner)
    for number in range(5):
        publish_event(number)
    deliveries = [*Delivery.objects.filter(endpoint=endpoint).order_by("pk")]
    address = f"{HOOKS}/{endpoint.pk}/deliveries?limit=2"
    pages = [[row["id"] for row in page["results"]] for page in walk_pages(api, address)]
    newest_first = [row.pk for row in reversed(deliveries)]
    assert pages == [newest_first[:2], newest_first[2:4], newest_first[4:]]
    second = api.get(api.get(address).json()["next"])
    assert [row["id"] for row in api.get(second.json()["previous"]).json()["results"]] == newest_first[:2]
    assert second.links["prev"]["url"] == second.json()["previous"]


def test_a_delivery_shows_its_attempts_and_its_body(api: httpx.Client, owner: User) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(endpoint)
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
        "created_at": format_event_time(delivery.created_at),
        "next_at": None,
        "finished_at": format_event_time(started_at),
    }
    started = {"started_at": format_event_time(started_at)}
    attempt_log = [
        {**started, "milliseconds": 12, "status": 500, "error": "", "answer": "�no"},
        {**started, "milliseconds": 9, "status": None, "error": "It broke.", "answer": ""},
    ]
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    assert api.get(address).json()["results"] == [summary]
    response = api.get(f"{address}/{delivery.pk}")
    assert response.json() == {**summary, "attempt_log": attempt_log, "body": json.loads(bytes(delivery.event.body))}
    assert bytes(delivery.event.body) in response.content


def test_no_cache_stores_what_is_read_of_a_webhook(api: httpx.Client, owner: User) -> None:
    endpoint = create_endpoint(owner)
    address = f"{HOOKS}/{endpoint.pk}"
    delivery_address = f"{address}/deliveries/{deliver_new_book(endpoint).pk}"
    for each in (HOOKS, address, f"{address}/deliveries", delivery_address, EVENTS):
        response = api.get(each)
        assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store"), each


def test_deliveries_are_found_by_state_and_kind(api: httpx.Client, owner: User) -> None:
    address = f"{HOOKS}/{create_made_endpoint(owner).pk}/deliveries"
    book = create_book()
    change_book(book, year=1)
    Delivery.objects.filter(event__kind="book.updated").update(state="delivered")
    delete_book(book)
    for query, expected in {
        "state=waiting": ["book.deleted", "book.created"],
        "state=delivered": ["book.updated"],
        "kind=book.created": ["book.created"],
        "kind=test.ping": [],
        "state=waiting&kind=book.deleted": ["book.deleted"],
    }.items():
        rows = api.get(f"{address}?{query}").json()["results"]
        assert [row["kind"] for row in rows] == expected, query
    for query, status in {
        "state=gone": 422,
        "kind=*": 422,
        "cursor=first": 422,
        "cursor=0": 422,
        "limit=501": 422,
        "kinds=book.created": 400,
    }.items():
        response = api.get(f"{address}?{query}")
        assert (response.status_code, list_fields(response)) == (status, {query.partition("=")[0]})


def test_the_wrong_parameter_of_the_stream_is_named(api: httpx.Client) -> None:
    negative, too_large = (StreamCursor(*ids, datetime.now(UTC)).encode() for ids in ((-1, 1), (1, 2**63)))
    cursors = ["", "x", "é", "\0", "WzFd", "a" * 3000, "WzEsMSwiMjAyNi0wMS0wMVQwMDowMDowMCJd", negative, too_large]
    for field, value, status in (
        *(("after", cursor, 422) for cursor in cursors),
        *(("limit", number, 422) for number in ("0", "501")),
        *(("kinds", kind, 422) for kind in ("", "*", "test.ping")),
        ("cursor", "x", 400),
    ):
        response = api.get(EVENTS, params={field: value})
        assert (response.status_code, list_fields(response)) == (status, {field}), (field, value)


def test_a_list_of_any_length_takes_the_same_number_of_queries(
    api: httpx.Client, owner: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    endpoint = create_made_endpoint(owner)
    deliver_new_book(endpoint)
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    # The first use of a key in a minute is stored.
    api.get(HOOKS)
    for _ in range(2):
        with django_assert_num_queries(2):
            api.get(HOOKS)
        with django_assert_num_queries(3):
            api.get(address)
        create_made_endpoint(owner)
        publish_event()


def test_a_delivery_can_be_sent_again(api: httpx.Client, owner: User) -> None:
    endpoint = create_made_endpoint(owner)
    delivery = deliver_new_book(endpoint)
    Delivery.objects.update(state="dead", attempted=5, next_at=None)
    address = f"{HOOKS}/{endpoint.pk}/deliveries"
    responses = [api.post(f"{address}/{delivery.pk}/redeliver") for _ in range(2)]
    assert [response.status_code for response in responses] == [202, 202]
    assert [response.json() for response in reversed(responses)] == api.get(address).json()["results"][:2]
    for replay, response in enumerate(responses, 1):
        redelivery = Delivery.objects.get(pk=response.json()["id"])
        assert (redelivery.event, redelivery.endpoint, redelivery.replay) == (delivery.event, endpoint, replay)
        assert (redelivery.state, redelivery.attempted) == ("waiting", 0)
        assert redelivery.next_at is not None
        assert response.headers["Location"] == f"{address}/{redelivery.pk}"


def test_a_delivery_belongs_to_its_webhook(api: httpx.Client, owner: User) -> None:
    endpoint, other = create_made_endpoint(owner), create_made_endpoint(owner)
    delivery = deliver_new_book(endpoint)
    address = f"{HOOKS}/{other.pk}/deliveries/{delivery.pk}"
    assert api.get(address).status_code == 404
    assert api.post(f"{address}/redeliver").status_code == 404
    assert Delivery.objects.count() == 2


def test_past_events_can_be_replayed_and_a_wrong_field_is_named(api: httpx.Client, owner: User) -> None:
    deliver_new_book(create_endpoint(create_owner("other")))
    endpoint = create_made_endpoint(owner)
    address = f"{HOOKS}/{endpoint.pk}/replay"
    span = {"events": ["*"], "after": format_event_time(timezone.now() - timedelta(hours=1)), "before": None}
    response = api.post(address, json=span)
    assert (response.status_code, response.json()) == (202, {"deliveries": 1})
    assert Delivery.objects.get(endpoint=endpoint).event.kind == "book.created"
    changes: list[tuple[str, Any]] = [
        ("events", ["test.ping"]),
        ("after", None),
        ("before", "now"),
        ("before", SPAN["after"]),
        ("since", "2026-01-31T00:00:00Z"),
    ]
    for field, value in changes:
        response = api.post(address, json={**SPAN, field: value})
        assert (response.status_code, list_fields(response)) == (422, {field}), (field, value)
