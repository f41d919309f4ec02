"""Signatures of webhooks (specification, Section 6; Standard Webhooks 1.0).

It needs the standard library alone: receivers may copy this file.
"""

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence

# Headers of forms A and B; EVENT is sent in form C, too.
EVENT = "X-Webhook-Event"
TIMESTAMP = "X-Webhook-Timestamp"
SIGNATURE = "X-Webhook-Signature"
SIGNATURE_PATTERN = re.compile(r"(?:sha256=|t=(?P<timestamp>[0-9]{1,12}),s=)[0-9A-Fa-f]{64}")
# Headers of form C. The id has no full stop: it separates what is signed.
STANDARD_ID = "webhook-id"
STANDARD_TIMESTAMP = "webhook-timestamp"
STANDARD_SIGNATURE = "webhook-signature"
ID_PATTERN = re.compile(r"[!-\-/-~]{1,200}")
TIMESTAMP_PATTERN = re.compile(r"[1-9][0-9]{0,11}")
SECRET_PREFIX = "whsec_"  # noqa: S105  # no secret
MIN_KEY_BYTES = 24
# Seconds, either way, between the sender's clock and the receiver's.
TOLERANCE = 300


class InvalidSignature(Exception):
    """No known secret signed the request, or its time is too far from now."""


def sign(form: str, secrets: Sequence[str], event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Returns the headers that sign a request. The first secret signs; in form C each one does, so that a receiver that
    knows any of them can verify it.
    """
    if form != "C":
        return {TIMESTAMP: str(timestamp), SIGNATURE: signature(form, secrets[0], timestamp, body)}
    signatures = " ".join(signature(form, secret, timestamp, body, event_id) for secret in secrets)
    return {STANDARD_ID: event_id, STANDARD_TIMESTAMP: str(timestamp), STANDARD_SIGNATURE: signatures}


def signature(form: str, secret: str, timestamp: int, body: bytes, event_id: str = "") -> str:
    """Returns one signature in form A, B or C; the timestamp is Unix time in seconds.

    Form A does not sign the timestamp: who has read a request can send it again at any time. Raises ValueError as
    decode_key does.
    """
    if form == "A":
        return f"sha256={digest(secret, body)}"
    if form == "B":
        return f"t={timestamp},s={digest(secret, b'%d.%b' % (timestamp, body))}"
    signed = b"%b.%d.%b" % (event_id.encode(), timestamp, body)
    return f"v1,{b64encode(hmac.digest(decode_key(secret), signed, 'sha256')).decode()}"


def digest(secret: str, signed: bytes) -> str:
    """Returns the HMAC of forms A and B, whose key is the whole text of the secret."""
    return hmac.digest(secret.encode(), signed, "sha256").hex()


def decode_key(secret: str) -> bytes:
    """Returns the key of form C: the bytes whose standard base64 follows `whsec_`. Raises ValueError."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    try:
        key = b64decode(encoded, validate=True)
    except ValueError:
        key = b""
    if encoded == secret or b64encode(key).decode() != encoded or len(key) < MIN_KEY_BYTES:
        raise ValueError(f"A secret of form C is {SECRET_PREFIX} and the base64 of at least {MIN_KEY_BYTES} bytes.")
    return key


def is_usable_secret(form: str, secret: str) -> bool:
    """Tells whether the form can sign with the secret: forms A and B can with any."""
    try:
        return form != "C" or bool(decode_key(secret))
    except ValueError:
        return False


def verify(
    headers: Mapping[str, str], body: bytes, secrets: Iterable[str], now: float, form: str | None = None
) -> None:
    """Raises InvalidSignature unless one of the secrets signed the request. `body` has the bytes as they came.

    A receiver that expects form B or C names it: without `form` a request in form A passes, at any time. During a
    rotation there are two secrets. Raises ValueError for a secret that the named form cannot have.
    """
    known = list(secrets)
    if isinstance(secrets, str) or not all(known):
        raise ValueError("Secrets are a list, and none is empty: with a letter or nothing for a key anybody can sign.")
    if form == "C" or (form is None and not list_values(headers, SIGNATURE)):
        usable = known if form else [secret for secret in known if is_usable_secret("C", secret)]
        verify_standard(headers, body, usable, now)
    else:
        verify_specified(headers, body, known, now, form)


def verify_specified(headers: Mapping[str, str], body: bytes, secrets: list[str], now: float, form: str | None) -> None:
    """Verifies form A or B."""
    sent = list_values(headers, SIGNATURE)
    match = SIGNATURE_PATTERN.fullmatch(sent[0]) if len(sent) == 1 else None
    timestamp = match and match["timestamp"]
    sent_form = "B" if timestamp else "A"
    if not match or form not in (None, sent_form):
        raise InvalidSignature("There is no signature of the expected form.")
    if timestamp:
        check_time(timestamp, now, list_values(headers, TIMESTAMP))
    value = sent[0].lower()
    if not any(hmac.compare_digest(value, signature(sent_form, each, int(timestamp or 0), body)) for each in secrets):
        raise InvalidSignature("The signature is of no known secret.")


def verify_standard(headers: Mapping[str, str], body: bytes, secrets: list[str], now: float) -> None:
    """Verifies form C: one of the signatures, which spaces separate, is of one of the secrets."""
    values = [list_values(headers, name) for name in (STANDARD_ID, STANDARD_TIMESTAMP, STANDARD_SIGNATURE)]
    event_id, timestamp, signatures = (sent[0] if len(sent) == 1 else "" for sent in values)
    if not (ID_PATTERN.fullmatch(event_id) and TIMESTAMP_PATTERN.fullmatch(timestamp) and signatures):
        raise InvalidSignature("There is no signature of the expected form.")
    check_time(timestamp, now)
    expected = [signature("C", secret, int(timestamp), body, event_id).encode() for secret in secrets]
    sent_signatures = [sent.encode(errors="replace") for sent in signatures.split(" ")]
    if not any(hmac.compare_digest(sent, value) for sent in sent_signatures for value in expected):
        raise InvalidSignature("The signature is of no known secret.")


def list_values(headers: Mapping[str, str], name: str) -> list[str]:
    """Returns the values of a header, whose name may be in any case."""
    return [value for sent_name, value in headers.items() if sent_name.lower() == name.lower()]


def check_time(timestamp: str, now: float, others: Iterable[str] = ()) -> None:
    """Raises InvalidSignature also if one of the other timestamps differs."""
    if {*others} - {timestamp} or abs(now - int(timestamp)) > TOLERANCE:
        raise InvalidSignature("The timestamp is not of now.")
