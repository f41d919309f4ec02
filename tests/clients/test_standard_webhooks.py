"""The libraries of Standard Webhooks, and Svix' own, exchange events in form C with the library.

The programs of docs/app-developers.md run as they are written there.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.documents import APP_DEVELOPERS, list_code_blocks
from tests.support.endpoints import SECRET, create_endpoint
from tests.support.receivers import ReceivedRequest, respond_with, start_receiver
from tests.support.server import reserve_port, wait_for_port
from tests.support.sources import SECRET as SOURCES_SECRET
from tests.support.sources import SOURCE_NAME, build_event, create_source
from tests.support.waiting import PROCESS_TIMEOUT
from webhooks.encryption import generate_secret
from webhooks.endpoints import add_endpoint_secret, promote_secret
from webhooks.models import Delivery, Endpoint, Received
from webhooks.outbox import create_ping
from webhooks.signing import sign

SCRIPT = Path(__file__).with_name("sign_and_verify.js")
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
# The first is a program with a generated client.
_, PYTHON_RECEIVER = list_code_blocks(APP_DEVELOPERS, "python")
JAVASCRIPT_RECEIVER, JAVASCRIPT_FORM_B = list_code_blocks(APP_DEVELOPERS, "js")
# Runs the function of the document on standard input's arguments.
CALL_FORM_B = """
import { text } from "node:stream/consumers";
const { headers, body, secret, now } = JSON.parse(await text(process.stdin));
console.log([body, body + " "].map((sent) => isFromLibrary(headers, sent, secret, now)).join());
"""


def deliver_ping(endpoint: Endpoint) -> Delivery:
    """Delivers a ping to the endpoint, as the worker does."""
    with transaction.atomic():
        delivery = create_ping(endpoint, timezone.now())
    call_command("deliver_webhooks", once=True)
    delivery.refresh_from_db()
    return delivery


@transaction.atomic
def add_new_secret(endpoint: Endpoint, *, is_promoted: bool = False) -> str:
    secret = add_endpoint_secret(endpoint, None, timezone.now())
    if is_promoted:
        promote_secret(endpoint)
    return secret


def receive_ping(*, rotates: bool = False) -> tuple[ReceivedRequest, str]:
    """Returns a request in form C, and a pending secret that signed it too, or else the endpoint's secret."""
    with start_receiver(respond_with(204)) as receiver:
        endpoint = create_endpoint(url=receiver.url, form="C")
        secret = add_new_secret(endpoint) if rotates else SECRET
        assert deliver_ping(endpoint).state == "delivered"
    [request] = receiver.requests
    return request, secret


def run_javascript(secret: str, headers: dict[str, str], body: bytes, now: int = 0) -> dict[str, dict[str, Any]]:
    """Returns for each library the event, or why it refuses the request; and its own signature of the body."""
    script_input = {"secret": secret, "headers": headers, "body": body.decode(), "id": MESSAGE_ID, "now": now}
    process = subprocess.run(
        ["node", SCRIPT], input=json.dumps(script_input), capture_output=True, text=True, timeout=PROCESS_TIMEOUT
    )
    assert process.returncode == 0, process.stderr
    results: dict[str, dict[str, Any]] = json.loads(process.stdout)
    assert results.keys() == {"standardwebhooks", "svix"}
    return results


def send_signed(client: httpx.Client, signature: str, body: bytes, now: int) -> int:
    """Sends an event that a library signed, and returns the status of the response."""
    headers = {"webhook-id": MESSAGE_ID, "webhook-timestamp": str(now), "webhook-signature": signature}
    return client.post(f"/webhooks/receive/{SOURCE_NAME}", content=body, headers=headers).status_code


@pytest.mark.usefixtures("transactional_db", "allow_private")
@pytest.mark.parametrize("rotates", [False, True])
def test_the_library_for_python_verifies_an_event(*, rotates: bool) -> None:
    request, secret = receive_ping(rotates=rotates)
    for known_secret in {SECRET, secret}:
        event = Webhook(known_secret).verify(request.body, request.headers)
        assert (event, event["id"]) == (json.loads(request.body), request.headers["webhook-id"])
    for other_secret, body in ((generate_secret(), request.body), (SECRET, request.body + b" ")):
        with pytest.raises(WebhookVerificationError):
            Webhook(other_secret).verify(body, request.headers)


@pytest.mark.usefixtures("transactional_db", "allow_private", "node_packages")
@pytest.mark.parametrize("rotates", [False, True])
def test_the_libraries_for_javascript_verify_an_event(*, rotates: bool) -> None:
    request, secret = receive_ping(rotates=rotates)
    event = json.loads(request.body)
    for known_secret in {SECRET, secret}:
        results = run_javascript(known_secret, request.headers, request.body)
        assert [result["event"] for result in results.values()] == [event, event]
    refusals = run_javascript(generate_secret(), request.headers, request.body)
    assert {result["event"] for result in refusals.values()} == {"No matching signature found"}


def test_what_the_library_for_python_signs_is_accepted_once(api: httpx.Client) -> None:
    create_source(form="C")
    body, now = json.dumps(build_event(name="Zoë")).encode(), int(time.time())
    signed = Webhook(SOURCES_SECRET).sign(MESSAGE_ID, datetime.fromtimestamp(now, UTC), body.decode())
    other = Webhook(generate_secret()).sign(MESSAGE_ID, datetime.fromtimestamp(now, UTC), body.decode())
    assert [send_signed(api, value, body, now) for value in (other, f"{other} {signed}", signed)] == [401, 200, 200]
    assert Received.objects.get().event_id == MESSAGE_ID
    assert send_signed(api, signed, body, now + 1) == 401


@pytest.mark.usefixtures("node_packages")
def test_what_the_libraries_for_javascript_sign_is_accepted(api: httpx.Client) -> None:
    create_source(form="C")
    body, now = json.dumps(build_event(name="Zoë")).encode(), int(time.time())
    results = run_javascript(SOURCES_SECRET, {}, body, now)
    assert [send_signed(api, result["signature"], body, now) for result in results.values()] == [200, 200]


@contextmanager
def run_receiver(command: list[str], code: str, secret: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Runs a receiver of the document, and yields its address and its process."""
    with reserve_port() as port:
        environment = os.environ | {"SECRET": secret, "PORT": str(port)}
        with subprocess.Popen([*command, code], env=environment, stdout=subprocess.PIPE, cwd=SCRIPT.parent) as process:
            try:
                wait_for_port(process, port)
                yield f"http://127.0.0.1:{port}/", process
            finally:
                process.terminate()


def check_receiver(command: list[str], code: str) -> None:
    """The receiver takes a ping that is signed with its secret, and no other."""
    with run_receiver(command, code, SECRET) as (url, process):
        endpoint = create_endpoint(url=url, form="C")
        delivery = deliver_ping(endpoint)
        add_new_secret(endpoint, is_promoted=True)
        refused = deliver_ping(endpoint)
        process.terminate()
        output = process.communicate(timeout=PROCESS_TIMEOUT)[0].decode()
    assert (delivery.state, delivery.attempts.get().status) == ("delivered", 204)
    assert (refused.state, refused.attempts.get().status) == ("waiting", 401)
    assert output == f"test.ping {delivery.event.uuid}\n"


@pytest.mark.usefixtures("transactional_db", "allow_private")
def test_the_documented_receiver_in_python_works() -> None:
    check_receiver([sys.executable, "-c"], PYTHON_RECEIVER)


@pytest.mark.usefixtures("transactional_db", "allow_private", "node_packages")
def test_the_documented_receiver_in_javascript_works() -> None:
    check_receiver(["node", "--input-type=module", "--eval"], JAVASCRIPT_RECEIVER)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("secret", "seconds", "expected"),
    [(SECRET, 0, "true,false"), (SECRET, 301, "false,false"), ("another secret", 0, "false,false")],
)
def test_the_documented_function_in_javascript_verifies_form_b(secret: str, seconds: int, expected: str) -> None:
    body, now = json.dumps({"title": "Überall"}), 1_700_000_000
    headers = {name.lower(): value for name, value in sign("B", [SECRET], "", now, body.encode()).items()}
    process = subprocess.run(
        ["node", "--input-type=module", "--eval", JAVASCRIPT_FORM_B + CALL_FORM_B],
        input=json.dumps({"headers": headers, "body": body, "secret": secret, "now": now + seconds}),
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT,
    )
    assert (process.stdout.strip(), process.stderr) == (expected, "")
