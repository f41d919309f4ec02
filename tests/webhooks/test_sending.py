"""One request to a receiver, and its outcome for each way a receiver may answer or fail."""

import asyncio
import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings

from tests.support.endpoints import SECRET
from tests.support.receivers import respond_with, start_receiver
from webhooks import sending
from webhooks.attempts import Outcome
from webhooks.delivery import LeasedDelivery
from webhooks.models import MAX_ANSWER_BYTES
from webhooks.queue import POISONED_REASON
from webhooks.signing import verify

BODY = json.dumps({"id": "1", "event": "book.created", "title": "Ünïcode"}).encode()
NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
UNIX = int(NOW.timestamp())


pytestmark = pytest.mark.usefixtures("allow_private")


def send_once(url: str, form: str = "B", time_out: float = 5, *, is_poisoned: bool = False) -> Outcome:
    delivery = LeasedDelivery(1, UUID(int=1), 0, 1, url, form, SECRET, "book.created", BODY, is_poisoned)

    async def send() -> Outcome:
        async with sending.open_sender(1, lambda: NOW, time_out) as sender:
            return await sending.send_delivery(sender, delivery)

    return asyncio.run(send())


@pytest.mark.parametrize("form", ["A", "B"])
def test_a_receiver_gets_the_body_to_the_byte_and_can_verify_it(form: str) -> None:
    with start_receiver(respond_with(200, b"ok")) as receiver:
        outcome = send_once(f"{receiver.url}?x=%2F%20y", form)
    [request] = receiver.requests
    verify(request.headers, request.body, [SECRET], now=UNIX + 1, form=form)
    assert (request.path, request.body) == ("/hook?x=%2F%20y", BODY)
    expected = {
        "X-Webhook-Event": "book.created",
        "X-Webhook-Timestamp": str(UNIX),
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }
    assert {name: request.headers[name] for name in expected} == expected
    assert (outcome.status, outcome.answer, outcome.is_delivered, outcome.started_at) == (200, b"ok", True, NOW)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with (
        start_receiver(respond_with(200)) as target,
        start_receiver(respond_with(status, Location=target.url)) as receiver,
    ):
        outcome = send_once(receiver.url)
    assert (outcome.status, outcome.is_delivered, target.requests) == (status, False, [])


def test_only_the_beginning_of_a_long_answer_is_kept() -> None:
    with start_receiver(respond_with(200, b"x" * 1_000_000)) as receiver:
        assert send_once(receiver.url).answer == b"x" * MAX_ANSWER_BYTES


def test_an_answer_is_not_decompressed() -> None:
    with start_receiver(respond_with(200, b"not gzip at all", Content_Encoding="gzip")) as receiver:
        assert (send_once(receiver.url).status, send_once(receiver.url).answer) == (200, b"not gzip at all")


def hang(handler: Any) -> None:
    """Sends no answer while the connection is open."""
    handler.connection.settimeout(5)
    handler.connection.recv(1)
    handler.close_connection = True


def drip(handler: Any) -> None:
    """Sends one byte at a time while the connection is open."""
    handler.connection.settimeout(0.01)
    handler.close_connection = True
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(500):
        try:
            handler.wfile.write(b"x")
            if not handler.connection.recv(1):
                return
        except TimeoutError:
            continue
        except OSError:
            return


@pytest.mark.parametrize("answer", [hang, drip])
def test_one_time_limit_covers_the_whole_request(answer: Any) -> None:
    with start_receiver(answer) as receiver:
        outcome = send_once(receiver.url, time_out=0.2)
    assert (outcome.status, outcome.error) == (None, "No whole answer came in time.")
    assert 150 < outcome.milliseconds < 2_000


def write_garbage(handler: Any) -> None:
    handler.wfile.write(b"\x00\xff no HTTP\r\n\r\n")
    handler.close_connection = True


def close_at_once(handler: Any) -> None:
    handler.close_connection = True


@pytest.mark.parametrize("answer", [write_garbage, close_at_once])
def test_an_invalid_or_missing_answer_is_reported(answer: Any) -> None:
    with start_receiver(answer) as receiver:
        outcome = send_once(receiver.url)
    assert (outcome.status, outcome.error) == (None, "The connection broke, or the answer was no HTTP.")


def test_an_address_where_nothing_listens_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome = send_once(f"http://127.0.0.1:{port}/")
    assert (outcome.error, outcome.is_permanent) == ("Nobody answers at the address.", False)


def test_a_certificate_is_checked() -> None:
    with start_receiver(respond_with(200)) as receiver:
        outcome = send_once(receiver.url.replace("http:", "https:"))
    assert outcome.error == "The certificate or the TLS connection is not good."


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
@pytest.mark.parametrize("is_registered", [True, False])
def test_private_addresses_are_not_reached(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, host: str, is_registered: bool
) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    if is_registered:
        # As if the name had pointed to a public address when the endpoint was registered.
        monkeypatch.setattr(sending, "validate_url_cached", lambda *_: None)
    with start_receiver(respond_with(200)) as receiver:
        outcome = send_once(f"http://{host}:{receiver.server_port}/")
    assert (outcome.error, outcome.is_permanent, receiver.requests) == ("The address is not a public one.", True, [])


def test_a_registered_url_without_tls_is_refused(settings: LazySettings) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    outcome = send_once("http://receiver.example/hook")
    assert (outcome.error, outcome.is_permanent) == ("The address is not a public one.", True)


def test_a_poisoned_delivery_is_not_sent() -> None:
    with start_receiver(respond_with(200)) as receiver:
        outcome = send_once(receiver.url, is_poisoned=True)
    assert (outcome.error, outcome.is_permanent, receiver.requests) == (POISONED_REASON, True, [])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120),
        ("0", 0),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True), 300),
        (format_datetime(NOW - timedelta(minutes=5), usegmt=True), -300),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 400, None),
        ("Sat, 31 Jan 99999 09:30:00 GMT", None),
        ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2026 00:00:00 +99999999", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, expected: float | None) -> None:
    assert sending.parse_retry_after(value, NOW) == expected
