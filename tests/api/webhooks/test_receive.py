"""What a service may rely on when it sends events to the library."""

import json
import time
from typing import Any

import httpx
from hypothesis import given

from tests.support.failures import build_error
from tests.support.responses import REQUEST_ID
from tests.support.sources import SECRET, SOURCE_NAME, build_event, create_source, post_event
from tests.support.strategies import any_json, any_text, hypothesis_settings
from webhooks.models import Received, Source, SourceSecret
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP, sign

NOT_VALID = build_error("UNAUTHENTICATED", "The signature is not valid")


def send_standard_event(client: httpx.Client, event_id: str, body: Any) -> int:
    """Sends an event in form C, and returns the status of the response."""
    content = json.dumps(body).encode()
    signed = sign("C", [SECRET], event_id, int(time.time()), content)
    return client.post(f"/webhooks/receive/{SOURCE_NAME}", content=content, headers=signed).status_code


def parse_uncached_error(response: httpx.Response) -> tuple[int, dict[str, Any]]:
    assert response.headers["Cache-Control"] == "no-store"
    return response.status_code, response.json()


def test_the_body_of_an_event_is_stored_unchanged(api: httpx.Client) -> None:
    source, body = create_source(), b'{"event": "shelf.moved",  "id": "1", "data": {"to": "\xc3\xbc"}}\n'
    response = post_event(api, body)
    assert (response.status_code, response.json()) == (200, {"received": True})
    assert (response.headers["Cache-Control"], response.headers["Content-Type"]) == ("no-store", "application/json")
    row = Received.objects.get()
    assert (row.source, row.event_id, row.kind, bytes(row.body)) == (source, "1", "shelf.moved", body)
    assert (row.state, row.attempted, row.claimed, row.lease) == ("waiting", 0, 0, None)


def test_an_event_that_is_sent_again_is_stored_once_for_each_source(api: httpx.Client) -> None:
    create_source()
    event = build_event(data={"try": 1})
    responses = [post_event(api, event), post_event(api, event), post_event(api, {**event, "data": {"try": 2}})]
    assert [(response.status_code, response.json()) for response in responses] == [(200, {"received": True})] * 3
    assert json.loads(bytes(Received.objects.get().body)) == event
    create_source("south")
    assert post_event(api, event, "south").status_code == 200
    assert Received.objects.filter(event_id=event["id"]).count() == 2


def test_a_source_may_sign_in_its_own_form_only(api: httpx.Client) -> None:
    for form, header in (("A", "X-Webhook-Signature"), ("B", "X-Webhook-Signature"), ("C", "webhook-signature")):
        create_source(form, form=form)
        for other in ("A", "B", "C"):
            response = post_event(api, build_event(), form, form=other)
            expected = (200, None) if other == form else (401, header)
            assert (response.status_code, response.headers.get("WWW-Authenticate")) == expected, (form, other)


def test_each_secret_of_a_source_is_good_and_others_are_skipped(api: httpx.Client) -> None:
    source = create_source(secrets=("whsec_old", "whsec_new"))
    SourceSecret.objects.create(source=source, sealed="sealed by another key", created_at=source.created_at)
    for secret, status in (("whsec_old", 200), ("whsec_new", 200), ("sealed by another key", 401)):
        assert post_event(api, build_event(), secret=secret).status_code == status, secret
    create_source("south", form="C", secrets=("whsec_old", SECRET))
    assert post_event(api, build_event(), "south", form="C").status_code == 200


def test_the_event_of_form_c_has_the_signed_id(api: httpx.Client) -> None:
    """Who sends for others, as Svix does, has ids of its own; the body has one, or none."""
    source = create_source(form="C")
    bodies: list[dict[str, Any]] = [build_event(), {"event": "shelf.moved"}, {"id": 7, "event": "shelf.moved"}]
    for number, body in enumerate(bodies):
        assert send_standard_event(api, f"msg_{number}", body) == 200
    assert send_standard_event(api, "msg_0", build_event(data={"try": 2})) == 200
    rows = Received.objects.order_by("pk")
    assert [(row.source, row.event_id, row.kind) for row in rows] == [
        (source, f"msg_{number}", "shelf.moved") for number in range(3)
    ]
    assert [json.loads(bytes(row.body)) for row in rows] == bodies


def test_the_kind_of_form_c_may_be_a_type(api: httpx.Client) -> None:
    create_source(form="C")
    assert send_standard_event(api, "msg_1", {"type": "shelf.moved", "data": {}}) == 200
    assert send_standard_event(api, "msg_2", {"type": "shelf.moved", "event": "shelf.burnt"}) == 200
    assert list(Received.objects.order_by("pk").values_list("kind", flat=True)) == ["shelf.moved", "shelf.burnt"]
    assert send_standard_event(api, "msg_3", {"data": {}}) == 422
    assert send_standard_event(api, "msg_4", {"type": 1}) == 422
    assert send_standard_event(api, "msg_5", []) == 422


def test_only_form_c_has_its_id_in_a_header(api: httpx.Client) -> None:
    create_source()
    event = build_event()
    assert post_event(api, event, headers={"webhook-id": "another"}).status_code == 200
    assert Received.objects.get().event_id == event["id"]
    assert post_event(api, json.dumps({"type": "shelf.moved"}).encode()).status_code == 422


def test_an_event_with_a_wrong_signature_is_not_stored(api: httpx.Client) -> None:
    create_source()
    create_source("south", secrets=("whsec_of-the-south",))
    changes: list[dict[str, Any]] = [
        {"secret": "whsec_of-the-south"},
        {"secret": ""},
        {"now": time.time() - 600},
        {"headers": {SIGNATURE: "sha256="}},
        {"headers": {TIMESTAMP: "1"}},
    ]
    for change in changes:
        response = post_event(api, b"no JSON either", **change)
        assert parse_uncached_error(response) == (401, NOT_VALID), change
        assert response.headers["WWW-Authenticate"] == "X-Webhook-Signature"
    assert not Received.objects.exists()


def test_an_event_without_a_signature_is_not_stored(api: httpx.Client) -> None:
    create_source("unsigned", secrets=())
    for name in ("unsigned", create_source().name):
        response = api.post(f"/webhooks/receive/{name}", json=build_event(), headers={"X-Request-ID": REQUEST_ID})
        assert parse_uncached_error(response) == (401, NOT_VALID)
    assert post_event(api, build_event(), "unsigned", secret="").status_code == 401
    assert not Received.objects.exists()


def test_a_disabled_source_is_answered_like_an_unknown_one(api: httpx.Client) -> None:
    create_source(enabled=False)
    responses = [post_event(api, build_event(), name) for name in (SOURCE_NAME, "nobody", "n" * 500)]
    assert [parse_uncached_error(response) for response in responses] == [
        (404, build_error("NOT_FOUND", "Not Found"))
    ] * 3
    assert not Received.objects.exists()


def test_a_body_must_be_json(api: httpx.Client) -> None:
    create_source()
    message = "The body is not valid JSON."
    expected = (400, build_error("MALFORMED_REQUEST", message, ("body", message)))
    for body in (b"", b"\xff", b'{"id": NaN}', b"[" * 100_000, b'"\xed\xa0\x80"'):
        assert parse_uncached_error(post_event(api, body)) == expected, body[:9]
    assert not Received.objects.exists()


def test_an_event_has_an_id_and_a_kind(api: httpx.Client) -> None:
    create_source()
    for body, fields in {
        b"[]": ["body"],
        b"{}": ["id", "event"],
        b'{"id": null, "event": 1}': ["id", "event"],
        b'{"id": true, "event": "e"}': ["id"],
        b'{"id": "", "event": ""}': ["id", "event"],
        b'{"id": "\\u0000", "event": "\\u0000"}': ["id", "event"],
        b'{"id": "\\ud800", "event": "\\udfff"}': ["id", "event"],
        b'{"id": "%b", "event": "e"}' % (b"i" * 201): ["id"],
        b'{"id": "i", "event": "%b"}' % (b"e" * 101): ["event"],
    }.items():
        status, response = parse_uncached_error(post_event(api, body))
        assert (status, response["error"]["code"]) == (422, "VALIDATION_ERROR")
        assert [problem["field"] for problem in response["error"]["details"]] == fields, body
    assert not Received.objects.exists()


def test_an_id_may_be_any_text(api: httpx.Client) -> None:
    create_source()
    ids = [" ", "ü" * 200, "\U0001f4d6" * 200]
    assert {post_event(api, build_event(id=text, event="e" * 100)).status_code for text in ids} == {200}
    assert list(Received.objects.order_by("pk").values_list("event_id", flat=True)) == ids


def test_the_header_names_the_kind_of_the_body(api: httpx.Client) -> None:
    create_source()
    response = post_event(api, build_event(), headers={EVENT: "shelf.burnt"})
    problem = (EVENT, "It names another kind than the body.")
    assert parse_uncached_error(response) == (422, build_error("VALIDATION_ERROR", "The request is not valid", problem))
    assert not Received.objects.exists()
    body = json.dumps(build_event()).encode()
    assert post_event(api, body).status_code == 200


def test_other_headers_and_a_slash_at_the_end_change_nothing(api: httpx.Client) -> None:
    create_source()
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        headers = {"Content-Type": media_type, "Authorization": "Bearer of others"}
        response = post_event(api, build_event(), f"{SOURCE_NAME}/", headers=headers)
        assert (response.status_code, response.json()) == (200, {"received": True})
        assert "Set-Cookie" not in response.headers


@hypothesis_settings
@given(id=any_text | any_json, kind=any_text | any_json, data=any_json)
def test_whatever_is_sent_has_a_response(api: httpx.Client, id: Any, kind: Any, data: Any) -> None:
    if not Source.objects.exists():
        create_source()
    response = post_event(api, json.dumps({"id": id, "event": kind, "data": data}).encode())
    assert response.status_code in (200, 400, 422)
    assert post_event(api, json.dumps(data).encode()).status_code in (400, 422)
