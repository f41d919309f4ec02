"""One request to a receiver, and its result for each way a receiver may answer or fail."""

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings

from library_site.jobs.leases import POISONED_REASON
from tests.support.endpoints import SECRET
from tests.support.receivers import respond_with, start_receiver
from tests.support.server import reserve_port
from webhooks.delivery import sending
from webhooks.delivery.attempts import AttemptResult
from webhooks.delivery.leases import LeasedDelivery
from webhooks.delivery.sending import MAX_RESPONSE_TRAFFIC
from webhooks.models import MAX_ANSWER_BYTES
from webhooks.signing import verify

BODY = json.dumps({"id": "1", "event": "book.created", "title": "Ünïcode"}).encode()
EVENT_ID = "3f6b0d0e-5d0c-4d3b-9a65-0f6d1c1f6a52"
NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
UNIX = int(NOW.timestamp())
NOT_PUBLIC = "Not a public address with https, and WEBHOOKS_ALLOW_PRIVATE is off."


pytestmark = pytest.mark.usefixtures("allow_private")


def build_delivery(url: str, form: str = "B", is_poisoned: bool = False) -> LeasedDelivery:
    return LeasedDelivery(1, UUID(int=1), 0, 1, url, form, (SECRET,), EVENT_ID, "book.created", BODY, None, is_poisoned)


def send_once(url: str, form: str = "B", time_out: float = 5, *, is_poisoned: bool = False) -> AttemptResult:
    async def send() -> AttemptResult:
        async with sending.open_sender(lambda: NOW, time_out) as sender:
            return await sending.send_delivery(sender, build_delivery(url, form, is_poisoned))

    return asyncio.run(send())


@pytest.mark.parametrize("form", ["A", "B", "C"])
def test_a_receiver_gets_the_body_to_the_byte_and_can_verify_it(form: str) -> None:
    with start_receiver(respond_with(200, b"ok")) as receiver:
        result = send_once(f"{receiver.url}?x=%2F%20y", form)
    [request] = receiver.requests
    verify(request.headers, request.body, [SECRET], now=UNIX + 1, form=form)
    assert (request.path, request.body) == ("/hook?x=%2F%20y", BODY)
    standard = {"webhook-id": EVENT_ID, "webhook-timestamp": str(UNIX)}
    signed = standard if form == "C" else {"X-Webhook-Timestamp": str(UNIX)}
    expected = {
        "X-Webhook-Event": "book.created",
        **signed,
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
    }
    assert {name: request.headers[name] for name in expected} == expected
    assert (result.status, result.answer, result.is_delivered, result.started_at) == (200, b"ok", True, NOW)


@pytest.mark.parametrize("status", [301, 308])
def test_redirects_are_not_followed(status: int) -> None:
    with (
        start_receiver(respond_with(200)) as target,
        start_receiver(respond_with(status, Location=target.url)) as receiver,
    ):
        result = send_once(receiver.url)
    assert (result.status, result.is_delivered, target.requests) == (status, False, [])


def test_only_the_beginning_of_a_long_answer_is_kept() -> None:
    with start_receiver(respond_with(200, b"x" * 1_000_000)) as receiver:
        assert send_once(receiver.url).answer == b"x" * MAX_ANSWER_BYTES


def hang(handler: Any) -> None:
    """Sends no response while the connection is open."""
    handler.connection.settimeout(5)
    handler.connection.recv(1)
    handler.close_connection = True


def drip(beginning: bytes) -> Callable[[Any], None]:
    """Sends one byte at a time after the beginning, while the connection is open."""

    def response(handler: Any) -> None:
        handler.connection.settimeout(0.01)
        handler.close_connection = True
        handler.wfile.write(beginning)
        for _ in range(500):
            try:
                handler.wfile.write(b"x")
                if not handler.connection.recv(1):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    return response


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (hang, (None, "No whole answer came in time.")),
        (drip(b"HTTP/1.1 200 "), (None, "No whole answer came in time.")),
        (drip(OK + b"X-Slow: "), (200, "")),
        (drip(OK + b"Content-Length: 1000\r\n\r\n"), (200, "")),
    ],
)
def test_one_time_limit_covers_the_whole_request(response: Any, expected: tuple[int | None, str]) -> None:
    with start_receiver(response) as receiver:
        result = send_once(receiver.url, time_out=0.2)
    assert (result.status, result.error) == expected
    assert 150 < result.milliseconds < 2_000


EMPTY = b"Content-Length: 0\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TOO_LONG = "Too much came before the final status and its headers ended."
NO_HTTP = "The connection broke, or the answer was no HTTP."


def write(response: bytes) -> Callable[[Any], None]:
    """Sends these bytes and ends the connection."""

    def answer_once(handler: Any) -> None:
        handler.wfile.write(response)
        handler.close_connection = True

    return answer_once


def flood(beginning: bytes, repeated: bytes) -> Callable[[Any], None]:
    """Sends the beginning, then the same bytes again and again while the connection is open."""

    def response(handler: Any) -> None:
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(beginning)
            while True:
                handler.wfile.write(repeated * 1000)

    return response


@pytest.mark.parametrize(
    ("beginning", "repeated", "expected"),
    [
        (b"", CONTINUE, (None, TOO_LONG)),
        (b"HTTP/1.1 200 ", b"x", (None, TOO_LONG)),
        (b"", b"\r\n", (None, NO_HTTP)),
        (OK + b"X-Long: ", b"x", (200, "")),
        (OK, b"X-Many: x\r\n", (200, "")),
    ],
)
def test_a_response_whose_headers_do_not_end_is_cut_off(
    beginning: bytes, repeated: bytes, expected: tuple[int | None, str]
) -> None:
    with start_receiver(flood(beginning, repeated)) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.error, result.is_permanent) == (*expected, False)


@pytest.mark.parametrize(
    ("beginning", "repeated"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n", b"x"),
        (OK + b"Content-Length: 10000000000\r\n\r\n", b"x"),
        (CHUNKED, b"1\r\nx\r\n"),
        (CHUNKED + b"1;", b"x"),
        (CHUNKED, b"0"),
    ],
)
def test_a_response_whose_body_does_not_end_is_cut_off(beginning: bytes, repeated: bytes) -> None:
    with start_receiver(flood(beginning, repeated)) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.error) == (200, "")
    assert result.answer == b"x" * len(result.answer)
    assert len(result.answer) <= MAX_ANSWER_BYTES


def test_a_receiver_may_send_interim_responses() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n"
    with start_receiver(write(hint * 20 + OK + b"Content-Length: 2\r\n\r\nok")) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.answer) == (200, b"ok")


def reset(beginning: bytes) -> Callable[[Any], None]:
    """Sends the beginning, then ends the connection with a reset."""

    def response(handler: Any) -> None:
        handler.wfile.write(beginning)
        # Closed with zero seconds to linger, a connection is reset.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.connection.close()
        handler.close_connection = True

    return response


@pytest.mark.parametrize(
    ("response", "body"),
    [
        (write(OK + b"X-Half"), b""),
        (write(OK + b"X-Long: %s\r\n" % (b"x" * 9_000) + b"Content-Length: 2\r\n\r\nok"), b"ok"),
        (write(OK + b"X-Many: x\r\n" * 1_000 + b"Content-Length: 2\r\n\r\nok"), b"ok"),
        (write(OK + b"No colon\r\nContent-Length : 2\r\n\r\nok"), b"ok"),
        (write(OK + b"Content-Length: 9\r\n\r\nok"), b"ok"),
        (write(OK + b"Content-Length: 1\r\n\r\nok"), b"o"),
        (write(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"), b""),
        (write(OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok"), b""),
        (write(OK + b"Transfer-Encoding: gzip\r\n\r\nok"), b""),
        (write(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"), b""),
        (write(CHUNKED + b"none\r\nok"), b""),
        (write(CHUNKED + b"1\r\nok\r\n"), b"o"),
        (write(CHUNKED + b"5\r\nok"), b"ok"),
        (reset(OK + b"Content-Length: 9\r\n\r\nok"), b"ok"),
        (reset(OK), b""),
    ],
)
def test_a_status_of_success_is_an_acknowledgement_whatever_follows(response: Any, body: bytes) -> None:
    with start_receiver(response) as receiver:
        result = send_once(receiver.url)
    assert (result.is_delivered, result.error, result.answer) == (True, "", body)


def test_when_to_try_again_is_read_of_a_broken_answer() -> None:
    with start_receiver(write(b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 9\r\n\r\n")) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.retry_after, result.is_delivered) == (503, 120, False)


def test_another_protocol_is_not_spoken() -> None:
    header = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    with start_receiver(flood(b"HTTP/1.1 101 Switching Protocols\r\n" + header + b"\r\n", b"x")) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.answer, result.is_delivered) == (101, b"", False)


@pytest.mark.parametrize(
    "response", [b"HTTP/1.0 200 OK\r\n\r\nwell received", CHUNKED + b"5\r\nwell \r\n8;a=b\r\nreceived\r\n0\r\n\r\n"]
)
def test_a_response_needs_no_length(response: bytes) -> None:
    with start_receiver(write(response)) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.answer) == (200, b"well received")


def send_twice(url: str, between: Callable[[], Any]) -> list[int | None]:
    """The statuses of two requests of one sender."""

    async def send() -> list[int | None]:
        async with sending.open_sender(lambda: NOW, 5) as sender:
            first = await sending.send_delivery(sender, build_delivery(url))
            await asyncio.to_thread(between)
            second = await sending.send_delivery(sender, build_delivery(url))
        return [first.status, second.status]

    return asyncio.run(send())


@pytest.mark.parametrize(
    ("sent", "connections"),
    [
        (OK + b"Content-Length: 2\r\n\r\nok", 1),
        (OK + b"Content-Length: 20000\r\n\r\n" + b"x" * 20_000, 1),
        (CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: x\r\n\r\n", 1),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 1),
        (OK + b"Content-Length: 1000000\r\n\r\n".ljust(MAX_RESPONSE_TRAFFIC, b"x"), 2),
        (OK + b"Content-Length: 1\r\n\r\nok", 2),
        (OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", 2),
        (OK + b"Connection: Close\r\n" + EMPTY, 2),
        (b"HTTP/1.0 200 OK\r\n" + EMPTY, 2),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", 2),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", 2),
    ],
)
def test_a_connection_is_used_again_after_an_answer_with_a_clear_end(sent: bytes, connections: int) -> None:
    addresses = []

    def response(handler: Any) -> None:
        addresses.append(handler.client_address)
        handler.wfile.write(sent)

    with start_receiver(response) as receiver:
        assert set(send_twice(receiver.url, between=lambda: None)) <= {200, 204}
    assert (len(addresses), len(set(addresses))) == (2, connections)


@pytest.mark.parametrize(
    ("last_words", "expected", "requests"), [(b"", [200, 200], 3), (b"H", [200, None], 2), (OK, [200, 200], 2)]
)
def test_a_request_is_repeated_if_its_old_connection_ends_without_a_byte(
    last_words: bytes, expected: list[int | None], requests: int
) -> None:
    addresses = set()

    def answer_once_a_connection(handler: Any) -> None:
        handler.wfile.write(last_words if handler.client_address in addresses else OK + EMPTY)
        handler.close_connection = handler.client_address in addresses
        addresses.add(handler.client_address)

    with start_receiver(answer_once_a_connection) as receiver:
        assert send_twice(receiver.url, between=lambda: None) == expected
    assert len(receiver.requests) == requests


def test_a_request_is_repeated_once_and_by_a_new_connection() -> None:
    addresses: list[Any] = []

    def answer_first(handler: Any) -> None:
        addresses.append(handler.client_address)
        handler.wfile.write(b"" if addresses[1:] else OK + EMPTY)
        handler.close_connection = len(addresses) > 1

    with start_receiver(answer_first) as receiver:
        assert send_twice(receiver.url, between=lambda: None) == [200, None]
    assert (len(addresses), len(set(addresses))) == (3, 2)


def test_a_response_without_a_request_counts_for_none() -> None:
    is_idle, was_closed = threading.Event(), threading.Event()

    def response(handler: Any) -> None:
        handler.wfile.write(OK + EMPTY)
        if is_idle.wait(5) and not was_closed.is_set():
            handler.wfile.write(OK + EMPTY)
            handler.connection.settimeout(5)
            assert handler.connection.recv(1) == b""
            was_closed.set()

    def wait_while_idle() -> None:
        is_idle.set()
        was_closed.wait(5)

    with start_receiver(response) as receiver:
        assert send_twice(receiver.url, between=wait_while_idle) == [200, 200]
    assert was_closed.is_set()


@pytest.mark.parametrize("response", [write(b"\x00\xff no HTTP\r\n\r\n"), write(b"")])
def test_an_invalid_or_missing_answer_is_reported(response: Any) -> None:
    with start_receiver(response) as receiver:
        result = send_once(receiver.url)
    assert (result.status, result.error) == (None, NO_HTTP)


def test_an_address_where_nothing_listens_is_reported() -> None:
    with reserve_port() as port:
        result = send_once(f"http://127.0.0.1:{port}/")
    assert (result.error, result.is_permanent) == ("Nobody answers at the address.", False)


def test_a_certificate_is_checked() -> None:
    with start_receiver(respond_with(200)) as receiver:
        result = send_once(receiver.url.replace("http:", "https:"))
    assert result.error == "The certificate or the TLS connection is not good."


@pytest.mark.parametrize(
    ("host", "is_registered"), [("127.0.0.1", True), ("[::ffff:127.0.0.1]", True), ("localhost", False)]
)
def test_private_addresses_are_not_reached(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch, host: str, is_registered: bool
) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    if is_registered:
        # As if the name had pointed to a public address when the endpoint was registered.
        monkeypatch.setattr(sending, "validate_url_cached", lambda *_: None)
    with start_receiver(respond_with(200)) as receiver:
        result = send_once(f"http://{host}:{receiver.server_port}/")
    assert (result.error, result.is_permanent, receiver.requests) == (NOT_PUBLIC, True, [])


def test_a_registered_url_without_tls_is_refused(settings: LazySettings) -> None:
    settings.WEBHOOKS_ALLOW_PRIVATE = False
    result = send_once("http://receiver.example/hook")
    assert (result.error, result.is_permanent) == (NOT_PUBLIC, True)


def test_a_poisoned_delivery_is_not_sent() -> None:
    with start_receiver(respond_with(200)) as receiver:
        result = send_once(receiver.url, is_poisoned=True)
    assert (result.error, result.is_permanent, receiver.requests) == (POISONED_REASON, True, [])


def test_retry_after_is_a_number_or_a_date() -> None:
    seconds = {
        "120": 120,
        "0": 0,
        format_datetime(NOW + timedelta(minutes=5), usegmt=True): 300,
        format_datetime(NOW - timedelta(minutes=5), usegmt=True): -300,
        "soon": None,
        "-5": None,
        "٣": None,
        "9" * 400: None,
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT": None,
        "Mon, 01 Jan 2026 00:00:00 +99999999": None,
    }
    assert {value: sending.parse_retry_after(value, NOW) for value in seconds} == seconds
