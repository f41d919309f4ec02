"""The libraries of Standard Webhooks, and Svix' own, exchange events in form C with the library.

The function of docs/app-developers.md runs as it is written there.
"""

import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.documents import APP_DEVELOPERS, list_code_blocks
from tests.support.endpoints import SECRET, add_new_secret, create_endpoint, deliver_ping
from tests.support.receivers import ReceivedRequest, respond_with, start_receiver
from tests.support.sources import SECRET as SOURCES_SECRET
from tests.support.sources import SOURCE_NAME, build_event, create_source
from tests.support.waiting import PROCESS_TIMEOUT
from webhooks.encryption import generate_secret
from webhooks.models import Received
from webhooks.signing import sign

SCRIPT = Path(__file__).with_name("sign_and_verify.js")
MESSAGE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
(JAVASCRIPT_FORM_B,) = list_code_blocks(APP_DEVELOPERS, "js")
# Runs the function of the document on standard input's arguments.
CALL_FORM_B = """
import { text } from "node:stream/consumers";
const { headers, body, calls } = JSON.parse(await text(process.stdin));
console.log(calls.map(([end, secret, now]) => isFromLibrary(headers, body + end, secret, now)).join());
"""


def receive_ping() -> tuple[ReceivedRequest, str]:
    """Returns a request in form C, and the pending secret that signed it too."""
    with start_receiver(respond_with(204)) as receiver:
        endpoint = create_endpoint(url=receiver.url, form="C")
        secret = add_new_secret(endpoint)
        assert deliver_ping(endpoint).state == "delivered"
    [request] = receiver.requests
    return request, secret


def run_javascript(secrets: list[str], headers: dict[str, str], body: bytes, now: int = 0) -> list[dict[str, Any]]:
    """Returns for each library the event by each secret, or why it refuses the request; and its own signature."""
    script_input = {"secrets": secrets, "headers": headers, "body": body.decode(), "id": MESSAGE_ID, "now": now}
    process = subprocess.run(
        ["node", SCRIPT], input=json.dumps(script_input), capture_output=True, text=True, timeout=PROCESS_TIMEOUT
    )
    assert process.returncode == 0, process.stderr
    results: dict[str, dict[str, Any]] = json.loads(process.stdout)
    assert results.keys() == {"standardwebhooks", "svix"}
    return [*results.values()]


def send_signed(client: httpx.Client, signature: str, body: bytes, now: int) -> int:
    """Sends an event that a library signed, and returns the status of the response."""
    headers = {"webhook-id": MESSAGE_ID, "webhook-timestamp": str(now), "webhook-signature": signature}
    return client.post(f"/webhooks/receive/{SOURCE_NAME}", content=body, headers=headers).status_code


@pytest.mark.usefixtures("transactional_db", "allow_private")
def test_the_library_for_python_verifies_an_event() -> None:
    request, secret = receive_ping()
    for known_secret in (SECRET, secret):
        event = Webhook(known_secret).verify(request.body, request.headers)
        assert (event, event["id"]) == (json.loads(request.body), request.headers["webhook-id"])
    for other_secret, body in ((generate_secret(), request.body), (SECRET, request.body + b" ")):
        with pytest.raises(WebhookVerificationError):
            Webhook(other_secret).verify(body, request.headers)


@pytest.mark.usefixtures("transactional_db", "allow_private", "node_packages")
def test_the_libraries_for_javascript_verify_an_event() -> None:
    request, secret = receive_ping()
    event = json.loads(request.body)
    results = run_javascript([SECRET, secret, generate_secret()], request.headers, request.body)
    assert [result["events"] for result in results] == [[event, event, "No matching signature found"]] * 2


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
    results = run_javascript([SOURCES_SECRET], {}, body, now)
    assert [send_signed(api, result["signature"], body, now) for result in results] == [200, 200]


@pytest.mark.usefixtures("node")
def test_the_documented_function_in_javascript_verifies_form_b() -> None:
    body, now = json.dumps({"title": "Überall"}), 1_700_000_000
    headers = {name.lower(): value for name, value in sign("B", [SECRET], "", now, body.encode()).items()}
    calls = [("", SECRET, now), (" ", SECRET, now), ("", SECRET, now + 301), ("", "another secret", now)]
    process = subprocess.run(
        ["node", "--input-type=module", "--eval", JAVASCRIPT_FORM_B + CALL_FORM_B],
        input=json.dumps({"headers": headers, "body": body, "calls": calls}),
        capture_output=True,
        text=True,
        timeout=PROCESS_TIMEOUT,
    )
    assert (process.stdout.strip(), process.stderr) == ("true,false,false,false", "")
