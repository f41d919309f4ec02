"""What a receiver may rely on when it checks signatures as the documentation shows."""

import ast
import hmac
import sys
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

import pytest

from webhooks import signing

BODY = b'{"event": "book.created"}'
SECRET = "whsec_current"
NOW = 1_700_000_000
# Made with: printf '%s' <signed> | openssl dgst -sha256 -hmac whsec_current
HEX_A = "ac6b0e5cc22e50995dc2c69efd372c4a47f43b7f5f62509e5a8f0a2bfac748c8"
HEX_B = "d96a5c0ef71bac8cde1c7bc5c78d6b54e79bfef2c3fc91658412f1f879d4b93e"


# Those of form C are in the tests of the library `standardwebhooks`.
STANDARD_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_BODY, STANDARD_TIME = b'{"test": 2432232314}', 1614265330
STANDARD_HEADERS = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": str(STANDARD_TIME),
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}
SECRETS = {"A": SECRET, "B": SECRET, "C": STANDARD_SECRET}
OLDER_SECRET, NEWER_SECRET = (f"whsec_{b64encode(text * 8).decode()}" for text in (b"older", b"newer"))

UNUSABLE_SECRETS = [
    # Of the library's releases before form C: base64url, whose whole text is the key.
    "whsec_R8dN2vYq0bTzL6mXk4sWcJ7hPfE1gAuQ9iZoVxB3n5M",
    "whsec_-8dN2vYq0bTzL6mXk4sWcJ7hPfE1gAu_",
    "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwQR==",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La\nLaSw",
    f"whsec_{b64encode(bytes(23)).decode()}",
    "whsec_é",
]

each_form = pytest.mark.parametrize("form", SECRETS)


def build_headers(form: str, body: bytes = BODY) -> dict[str, str]:
    return signing.sign(form, [SECRETS[form]], "1", NOW, body)


def test_form_a_is_over_the_body_and_form_b_over_timestamp_and_body() -> None:
    assert signing.signature("A", SECRET, NOW, BODY) == f"sha256={HEX_A}"
    assert signing.signature("B", SECRET, NOW, BODY) == f"t={NOW},s={HEX_B}"


def test_form_c_is_that_of_standard_webhooks() -> None:
    signed = signing.sign("C", [STANDARD_SECRET], STANDARD_HEADERS["webhook-id"], STANDARD_TIME, STANDARD_BODY)
    assert signed == STANDARD_HEADERS
    signing.verify(STANDARD_HEADERS, STANDARD_BODY, [STANDARD_SECRET], STANDARD_TIME)


def test_form_c_has_a_signature_of_each_secret() -> None:
    headers = signing.sign("C", [OLDER_SECRET, NEWER_SECRET], "1", NOW, BODY)
    values = [signing.signature("C", secret, NOW, BODY, "1") for secret in (OLDER_SECRET, NEWER_SECRET)]
    assert headers["webhook-signature"] == " ".join(values)
    for secret in (OLDER_SECRET, NEWER_SECRET):
        signing.verify(headers, BODY, [secret], NOW, form="C")


@pytest.mark.parametrize("form", ["A", "B"])
def test_forms_a_and_b_have_the_signature_of_the_first_secret(form: str) -> None:
    assert signing.sign(form, [SECRET, "whsec_newer"], "1", NOW, BODY) == build_headers(form)


@each_form
def test_what_is_signed_is_verified(form: str) -> None:
    for body in (BODY, b"", b"\0\xff\r\n%d"):
        signing.verify(build_headers(form, body), body, [SECRETS[form]], NOW)
        signing.verify(build_headers(form, body), body, [SECRETS[form]], NOW, form=form)
        with pytest.raises(signing.InvalidSignature):
            signing.verify(build_headers(form, body), body + b" ", [SECRETS[form]], NOW)


@each_form
def test_headers_have_names_in_any_case(form: str) -> None:
    for change in (str.lower, str.upper):
        headers = {change(name): value for name, value in build_headers(form).items()}
        signing.verify(headers, BODY, [SECRETS[form]], NOW)


@each_form
def test_every_live_secret_is_good_and_no_other(form: str) -> None:
    signing.verify(build_headers(form), BODY, iter([OLDER_SECRET, SECRETS[form]]), NOW)
    signing.verify(build_headers(form), BODY, [SECRETS[form], NEWER_SECRET], NOW, form)
    for secrets in ([], [OLDER_SECRET], [SECRET.upper()]):
        with pytest.raises(signing.InvalidSignature):
            signing.verify(build_headers(form), BODY, secrets, NOW)


def test_form_c_skips_secrets_that_it_cannot_use() -> None:
    signing.verify(build_headers("C"), BODY, [SECRET, STANDARD_SECRET], NOW)
    with pytest.raises(signing.InvalidSignature):
        signing.verify(build_headers("C"), BODY, [SECRET], NOW)


def test_a_secret_of_another_form_is_an_error_of_the_receiver_who_names_form_c() -> None:
    for secret in UNUSABLE_SECRETS:
        assert (signing.is_usable_secret("C", secret), signing.is_usable_secret("A", secret)) == (False, True), secret
        with pytest.raises(ValueError, match="the base64 of at least 24 bytes"):
            signing.verify(build_headers("C"), BODY, [STANDARD_SECRET, secret], NOW, form="C")


@pytest.mark.parametrize("secrets", [SECRET, [""], [SECRET, ""]])
def test_a_secret_that_anybody_knows_is_an_error_of_the_receiver(secrets: str | list[str]) -> None:
    with pytest.raises(ValueError, match="anybody can sign"):
        signing.verify(build_headers("B"), BODY, secrets, NOW)


@pytest.mark.parametrize("form", ["B", "C"])
def test_a_signed_time_is_good_for_five_minutes(form: str) -> None:
    for seconds in (-300, 300):
        signing.verify(build_headers(form), BODY, [SECRETS[form]], NOW + seconds)
    for seconds in (-301, 301):
        with pytest.raises(signing.InvalidSignature):
            signing.verify(build_headers(form), BODY, [SECRETS[form]], NOW + seconds)


def test_form_a_never_expires() -> None:
    signing.verify(build_headers("A"), BODY, [SECRET], NOW + 10**9)


def test_a_required_form_is_the_only_one_accepted() -> None:
    for form, required in (("A", "B"), ("B", "A"), ("A", "a"), ("B", ""), ("B", "C"), ("C", "A"), ("C", "c")):
        with pytest.raises(signing.InvalidSignature):
            signing.verify(build_headers(form), BODY, [STANDARD_SECRET], NOW, form=required)


@pytest.mark.parametrize("form", ["A", "B"])
def test_the_header_of_the_timestamp_may_be_missing(form: str) -> None:
    signing.verify({signing.SIGNATURE: build_headers(form)[signing.SIGNATURE]}, BODY, [SECRET], NOW)


def test_both_timestamps_of_form_b_must_be_the_same() -> None:
    for timestamp in (str(NOW + 1), f"0{NOW}", f"{NOW} ", "", "1" * 5000, "١٧٠٠٠٠٠٠٠٠"):
        with pytest.raises(signing.InvalidSignature):
            signing.verify({**build_headers("B"), signing.TIMESTAMP: timestamp}, BODY, [SECRET], NOW)


CHANGED_HEADERS = [
    ("webhook-timestamp", str(NOW + 60)),
    ("webhook-id", "2"),
    ("webhook-id", ""),
    *(("webhook-timestamp", value) for value in (f"0{NOW}", f"{NOW}.0", "", "-1", "9" * 5000, "١٧٠٠٠٠٠٠٠٠")),
    *(("webhook-signature", value) for value in ("", "v1", "v1,", "v2,{}", "v1,{}=", "v1={}", "v1,{},v1,{}")),
    *(("webhook-signature", value) for value in ("V1,{}", "{}", "v1,é", "v1,\udcff")),
]


@pytest.mark.parametrize("form", ["C", None])
def test_no_header_of_form_c_can_be_changed(form: str | None) -> None:
    headers = build_headers("C")
    _, _, sent = headers["webhook-signature"].partition(",")
    for name, value in CHANGED_HEADERS:
        others = {other: headers[other] for other in headers if other != name}
        for changed in ({**headers, name: value.replace("{}", sent)}, {**headers, name.upper(): headers[name]}, others):
            with pytest.raises(signing.InvalidSignature):
                signing.verify(changed, BODY, [STANDARD_SECRET], NOW, form)


def test_an_id_of_form_c_is_one_word_without_a_full_stop() -> None:
    """With a full stop, the end of an id could be read as the time and the beginning of the body."""
    for id in ("1.2", "1 ", "1\n", "é", "i" * 201):
        headers = {**build_headers("C"), "webhook-id": id}
        headers["webhook-signature"] = signing.signature("C", STANDARD_SECRET, NOW, BODY, id)
        with pytest.raises(signing.InvalidSignature):
            signing.verify(headers, BODY, [STANDARD_SECRET], NOW)


@pytest.mark.parametrize(
    "sent", [f"sha256={HEX_A.upper()}", f"t={NOW},s={HEX_B.upper()}", f"sha256={HEX_A[:9].upper()}{HEX_A[9:]}"]
)
def test_the_digits_of_a_signature_may_be_capital_letters(sent: str) -> None:
    signing.verify({signing.SIGNATURE: sent}, BODY, [SECRET], NOW)


def test_other_signatures_of_form_c_are_skipped() -> None:
    for others in ("v1a,{} {}", "{}  v2,x", "v1,{} {}", "é {}"):
        headers = build_headers("C")
        headers["webhook-signature"] = others.replace("{}", headers["webhook-signature"])
        signing.verify(headers, BODY, [STANDARD_SECRET], NOW)


FORGED_SIGNATURES = [
    "",
    HEX_A,
    f"sha256={HEX_A[:-1]}",
    f"sha256={HEX_A}\n",
    f"SHA256={HEX_A}",
    f"sha1={HEX_A}",
    f"sha256={HEX_A[:-1]}é",
    f"sha256={HEX_A[:-1]}\udcff",
    f"sha256={HEX_A},sha256={HEX_A}",
    f"t={NOW}",
    f"s={HEX_B},t={NOW}",
    f"t={NOW},t={NOW},s={HEX_B}",
    *(f"t={time},s={HEX_B}" for time in ("", f"-{NOW}", f"+{NOW}", f"0{NOW}", f"{NOW}.0", "17e8", "1_700_000_000")),
    *(f"t={time},s={HEX_B}" for time in ("١٧٠٠٠٠٠٠٠٠", "9" * 5000, "9" * 12)),
    f"t={NOW},s={'é' * 64}",
    "a" * 1_000_000,
    # Signed by an empty key, and with a time that was moved.
    f"sha256={hmac.digest(b'', BODY, 'sha256').hex()}",
    f"t={NOW + 200},s={HEX_B}",
]
FORGED_HEADERS: list[Mapping[str, str]] = [
    {},
    *({signing.SIGNATURE: value} for value in FORGED_SIGNATURES),
    {signing.SIGNATURE: f"sha256={HEX_A}", signing.SIGNATURE.lower(): f"sha256={HEX_A}"},
    {signing.SIGNATURE: f"t={NOW},s={HEX_B}", signing.SIGNATURE.upper(): f"t={NOW},s={'0' * 64}"},
    {signing.SIGNATURE: f"t={NOW},s={HEX_B}", signing.TIMESTAMP: str(NOW), signing.TIMESTAMP.lower(): "0"},
]


def test_headers_of_any_kind_are_refused_in_one_way() -> None:
    for headers in FORGED_HEADERS:
        with pytest.raises(signing.InvalidSignature):
            signing.verify(headers, BODY, [SECRET], NOW)


def test_a_receiver_may_copy_the_file() -> None:
    """The file imports only the standard library."""
    tree = ast.walk(ast.parse(Path(signing.__file__).read_text(encoding="utf-8")))
    modules = {
        name
        for node in tree
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or "."] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    assert {name.split(".")[0] for name in modules} <= sys.stdlib_module_names
