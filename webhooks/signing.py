"""Signatures of webhooks (specification, Section 6). Of the standard library alone: receivers may copy this file."""

import hmac
import re
from collections.abc import Iterable, Mapping

EVENT = "X-Webhook-Event"
TIMESTAMP = "X-Webhook-Timestamp"
SIGNATURE = "X-Webhook-Signature"
# Seconds, either way, between the sender's clock and the receiver's.
TOLERANCE = 300
WRITTEN = re.compile(r"(?:sha256=|t=(?P<timestamp>[0-9]{1,12}),s=)[0-9a-f]{64}")


class InvalidSignature(Exception):
    """The request is not from one who knows a secret, or not from now."""


def signature(form: str, secret: str, timestamp: int, body: bytes) -> str:
    """The value of X-Webhook-Signature, in form A or B; the timestamp is Unix time in seconds.

    Form A does not sign the timestamp: a request once overheard is good for ever.
    """
    if form == "A":
        return f"sha256={digest(secret, body)}"
    return f"t={timestamp},s={digest(secret, b'%d.%b' % (timestamp, body))}"


def digest(secret: str, signed: bytes) -> str:
    return hmac.digest(secret.encode(), signed, "sha256").hex()


def verify(
    headers: Mapping[str, str], body: bytes, secrets: Iterable[str], now: float, form: str | None = None
) -> None:
    """Of the body as it came, before any parsing. Raises InvalidSignature, whatever the headers hold.

    During a rotation two secrets are live. Who was promised form B names it: a request of form A passes at any time.
    """
    live = list(secrets)
    if isinstance(secrets, str) or not all(live):
        raise ValueError("Secrets are a list, and none is empty: with a letter or nothing for a key anybody can sign.")
    sent = [value for name, value in headers.items() if name.lower() == SIGNATURE.lower()]
    written = WRITTEN.fullmatch(sent[0]) if len(sent) == 1 else None
    timestamp = written and written["timestamp"]
    sent_form = "B" if timestamp else "A"
    if not written or form not in (None, sent_form):
        raise InvalidSignature("There is no signature of the expected form.")
    if timestamp:
        check_time(timestamp, headers, now)
    if not any(hmac.compare_digest(sent[0], signature(sent_form, each, int(timestamp or 0), body)) for each in live):
        raise InvalidSignature("The signature is of no known secret.")


def check_time(timestamp: str, headers: Mapping[str, str], now: float) -> None:
    others = {value for name, value in headers.items() if name.lower() == TIMESTAMP.lower()}
    if others - {timestamp} or abs(now - int(timestamp)) > TOLERANCE:
        raise InvalidSignature("The timestamp is not of now.")
