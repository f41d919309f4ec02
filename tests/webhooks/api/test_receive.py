"""What a service may rely on that sends events here."""

import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from django.db import OperationalError
from hypothesis import given

from tests.support.concurrency import at_once
from tests.support.failures import broken_database, error
from tests.support.responses import ID
from tests.support.serving import Service, in_shell
from tests.support.sources import NAME, event, post, source
from tests.support.strategies import any_json, any_text, thorough
from webhooks.models import Received, SignatureForm, Source, SourceSecret
from webhooks.signing import EVENT, SIGNATURE, TIMESTAMP

NOT_VALID = error("UNAUTHENTICATED", "The signature is not valid")
# Made in the service's database, which is none of this process's.
PREPARATION = f"from tests.support.sources import source; source({NAME!r})"


def refused(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.status_code, answer.json()


def test_an_event_is_kept_to_the_byte(api: httpx.Client) -> None:
    sender, body = source(), b'{"event": "shelf.moved",  "id": "1", "data": {"to": "\xc3\xbc"}}\n'
    answer = post(api, body)
    assert (answer.status_code, answer.json()) == (200, {"received": True})
    assert (answer.headers["Cache-Control"], answer.headers["Content-Type"]) == ("no-store", "application/json")
    kept = Received.objects.get()
    assert (kept.source, kept.event_id, kept.kind, bytes(kept.body)) == (sender, "1", "shelf.moved", body)
    assert (kept.state, kept.attempted, kept.claimed, kept.lease) == ("waiting", 0, 0, None)


def test_an_event_that_is_sent_again_is_kept_once(api: httpx.Client) -> None:
    source()
    sent = event(data={"try": 1})
    answers = [post(api, sent), post(api, sent), post(api, {**sent, "data": {"try": 2}})]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"received": True})] * 3
    assert json.loads(bytes(Received.objects.get().body)) == sent


def test_ids_are_their_sources_own(api: httpx.Client) -> None:
    sent = event()
    for name in ("north", "south"):
        source(name)
        assert post(api, sent, name).status_code == 200
    assert Received.objects.filter(event_id=sent["id"]).count() == 2


def test_an_event_that_many_send_at_once_is_kept_once(service: Service) -> None:
    in_shell(service.database_url, PREPARATION)
    events = [event() for _ in range(4)]
    answers = at_once(service, [partial(post, body=one) for one in events * 6])
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, '{"received":true}')}
    sent = sorted(one["id"] for one in events)
    # Others use the service, too.
    assert sorted(kept for (kept,) in service.sql("SELECT event_id FROM webhooks_received") if kept in sent) == sent


@pytest.mark.parametrize("form", SignatureForm.values)
def test_a_source_signs_in_its_own_form_alone(api: httpx.Client, form: str) -> None:
    source(form=form)
    assert post(api, event(), form=form).status_code == 200
    [other] = set(SignatureForm.values) - {form}
    assert post(api, event(), form=other).status_code == 401


def test_each_secret_of_a_source_is_good(api: httpx.Client) -> None:
    source(secrets=("whsec_old", "whsec_new"))
    assert [post(api, event(), secret=secret).status_code for secret in ("whsec_old", "whsec_new")] == [200, 200]


def test_a_secret_that_cannot_be_read_is_passed_over(api: httpx.Client) -> None:
    sender = source(secrets=("whsec_read",))
    SourceSecret.objects.create(source=sender, sealed="sealed by another key", created_at=sender.created_at)
    assert post(api, event(), secret="whsec_read").status_code == 200
    assert post(api, event(), secret="sealed by another key").status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret": "whsec_of-the-south"},
        {"secret": ""},
        {"now": time.time() - 600},
        {"headers": {SIGNATURE: "sha256="}},
        {"headers": {TIMESTAMP: "1"}},
    ],
)
def test_what_is_not_signed_well_is_not_kept(api: httpx.Client, wrong: dict[str, Any]) -> None:
    source()
    source("south", secrets=("whsec_of-the-south",))
    answer = post(api, b"no JSON either", **wrong)
    assert refused(answer) == (401, NOT_VALID)
    assert answer.headers["WWW-Authenticate"] == "X-Webhook-Signature"
    assert not Received.objects.exists()


def test_what_is_not_signed_at_all_is_not_kept(api: httpx.Client) -> None:
    source("unsigned", secrets=())
    for name in ("unsigned", source().name):
        answer = api.post(f"/webhooks/receive/{name}", json=event(), headers={"X-Request-ID": ID})
        assert refused(answer) == (401, NOT_VALID)
    assert post(api, event(), "unsigned", secret="").status_code == 401
    assert not Received.objects.exists()


def test_nobody_learns_which_sources_are_disabled(api: httpx.Client) -> None:
    source(enabled=False)
    answers = [post(api, event(), name) for name in (NAME, "nobody", "n" * 500)]
    assert [refused(answer) for answer in answers] == [(404, error("NOT_FOUND", "Not Found"))] * 3
    assert not Received.objects.exists()


@pytest.mark.parametrize("name", ["%00", "%ff", "ü", "a/b", "a%2Fb", "", "."])
def test_strange_names_are_nobodys(service: Service, name: str) -> None:
    with service.client() as client:
        answer = post(client, event(), name)
    assert (answer.status_code, answer.json()) == (404, error("NOT_FOUND", "Not Found"))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'{"id": NaN}', b"[" * 100_000, b'"\xed\xa0\x80"', b"\0"])
def test_a_body_must_be_json(api: httpx.Client, body: bytes) -> None:
    source()
    answer = post(api, body)
    message = "The body is not valid JSON."
    assert refused(answer) == (400, error("MALFORMED_REQUEST", message, ("body", message)))
    assert not Received.objects.exists()


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"[]", ["body"]),
        (b"null", ["body"]),
        (b'"id"', ["body"]),
        (b"{}", ["id", "event"]),
        (b'{"id": null, "event": 1}', ["id", "event"]),
        (b'{"id": 1, "event": "e"}', ["id"]),
        (b'{"id": {}, "event": []}', ["id", "event"]),
        (b'{"id": true, "event": "e"}', ["id"]),
        (b'{"id": "", "event": ""}', ["id", "event"]),
        (b'{"id": "\\u0000", "event": "\\u0000"}', ["id", "event"]),
        (b'{"id": "\\ud800", "event": "\\udfff"}', ["id", "event"]),
        (b'{"id": "%b", "event": "e"}' % (b"i" * 201), ["id"]),
        (b'{"id": "i", "event": "%b"}' % (b"e" * 101), ["event"]),
    ],
)
def test_an_event_has_an_id_and_a_kind(api: httpx.Client, body: bytes, fields: list[str]) -> None:
    source()
    status, told = refused(post(api, body))
    assert (status, told["error"]["code"]) == (422, "VALIDATION_ERROR")
    assert [problem["field"] for problem in told["error"]["details"]] == fields
    assert not Received.objects.exists()


@pytest.mark.parametrize("id", ["i" * 200, " ", "ü" * 200, "\U0001f4d6" * 200, "1"])
def test_any_text_is_an_id(api: httpx.Client, id: str) -> None:
    source()
    assert post(api, event(id=id, event="e" * 100)).status_code == 200
    assert Received.objects.get().event_id == id


def test_the_header_names_the_kind_of_the_body(api: httpx.Client) -> None:
    source()
    answer = post(api, event(), headers={EVENT: "shelf.burnt"})
    problem = (EVENT, "It names another kind than the body.")
    assert refused(answer) == (422, error("VALIDATION_ERROR", "The request is not valid", problem))
    assert not Received.objects.exists()
    sent = json.dumps(event()).encode()
    assert post(api, sent).status_code == 200


def test_a_body_may_have_a_mebibyte(api: httpx.Client) -> None:
    source()
    sent = json.dumps(event()).encode()
    assert post(api, sent.ljust(1024 * 1024)).status_code == 200
    answer = post(api, sent.ljust(1024 * 1024 + 1))
    assert refused(answer) == (413, error("PAYLOAD_TOO_LARGE", "The body is too large"))


def test_a_body_of_unknown_length_is_read(service: Service) -> None:
    def chunks(size: int) -> Iterator[bytes]:
        yield b"{}".ljust(size)

    with service.client() as client:
        answers = [client.post("/webhooks/receive/nobody", content=chunks(size)) for size in (2, 1024 * 1024 + 1)]
    assert [answer.status_code for answer in answers] == [404, 413]


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_events_are_posted(api: httpx.Client, method: str) -> None:
    source()
    answer = api.request(method, f"/webhooks/receive/{NAME}")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_the_body_is_what_counts(api: httpx.Client, type: str) -> None:
    source()
    answer = post(api, event(), f"{NAME}/", headers={"Content-Type": type, "Authorization": "Bearer of others"})
    assert (answer.status_code, answer.json()) == (200, {"received": True})
    assert "Set-Cookie" not in answer.headers


@thorough
@given(id=any_text | any_json, kind=any_text | any_json, more=any_json)
def test_whatever_is_sent_has_an_answer(api: httpx.Client, id: Any, kind: Any, more: Any) -> None:
    if not Source.objects.exists():
        source()
    answer = post(api, json.dumps({"id": id, "event": kind, "data": more}).encode())
    assert answer.status_code in (200, 400, 422)
    assert post(api, json.dumps(more).encode()).status_code in (400, 422)


def test_an_event_is_not_taken_while_it_cannot_be_kept(api: httpx.Client) -> None:
    source()
    with broken_database(OperationalError("gone")):
        answer = post(api, event())
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
