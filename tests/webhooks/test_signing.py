"""What a receiver may rely on when it checks signatures as the documentation shows."""

import ast
import hmac
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from webhooks import signing

pytestmark = pytest.mark.database_independent

BODY = b'{"event": "book.created"}'
SECRET = "whsec_current"
NOW = 1_700_000_000
# Made with: printf '%s' <signed> | openssl dgst -sha256 -hmac whsec_current
HEX_A = "ac6b0e5cc22e50995dc2c69efd372c4a47f43b7f5f62509e5a8f0a2bfac748c8"
HEX_B = "d96a5c0ef71bac8cde1c7bc5c78d6b54e79bfef2c3fc91658412f1f879d4b93e"


def build_headers(form: str, **others: str) -> dict[str, str]:
    return {signing.SIGNATURE: signing.signature(form, SECRET, NOW, BODY), signing.TIMESTAMP: str(NOW), **others}


def test_form_a_is_over_the_body() -> None:
    assert signing.signature("A", SECRET, NOW, BODY) == f"sha256={HEX_A}"


def test_form_b_is_over_timestamp_and_body() -> None:
    assert signing.signature("B", SECRET, NOW, BODY) == f"t={NOW},s={HEX_B}"


@pytest.mark.parametrize("form", ["A", "B"])
@pytest.mark.parametrize("body", [BODY, b"", b"\0\xff\r\n%d", "ü".encode()])
def test_what_is_signed_is_verified(form: str, body: bytes) -> None:
    signature_headers = {signing.SIGNATURE: signing.signature(form, SECRET, NOW, body)}
    signing.verify(signature_headers, body, [SECRET], NOW)
    signing.verify(signature_headers, body, [SECRET], NOW, form=form)
    with pytest.raises(signing.InvalidSignature):
        signing.verify(signature_headers, body + b" ", [SECRET], NOW)


@pytest.mark.parametrize("form", ["A", "B"])
def test_headers_have_names_in_any_case(form: str) -> None:
    signing.verify({name.lower(): value for name, value in build_headers(form).items()}, BODY, [SECRET], NOW)
    signing.verify({name.upper(): value for name, value in build_headers(form).items()}, BODY, [SECRET], NOW)


@pytest.mark.parametrize("form", ["A", "B"])
def test_every_live_secret_is_good(form: str) -> None:
    signing.verify(build_headers(form), BODY, iter(["whsec_older", SECRET]), NOW)
    signing.verify(build_headers(form), BODY, [SECRET, "whsec_newer"], NOW)


@pytest.mark.parametrize("form", ["A", "B"])
@pytest.mark.parametrize("secrets", [[], ["whsec_older"], [SECRET.upper()]])
def test_no_other_secret_is_good(form: str, secrets: list[str]) -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify(build_headers(form), BODY, secrets, NOW)


@pytest.mark.parametrize("secrets", [SECRET, [""], [SECRET, ""]])
def test_a_secret_that_anybody_knows_is_an_error_of_the_receiver(secrets: str | list[str]) -> None:
    with pytest.raises(ValueError, match="anybody can sign"):
        signing.verify(build_headers("B"), BODY, secrets, NOW)


@pytest.mark.parametrize("seconds", [-300, -0.5, 300])
def test_form_b_is_good_for_five_minutes(seconds: float) -> None:
    signing.verify(build_headers("B"), BODY, [SECRET], NOW + seconds)


@pytest.mark.parametrize("seconds", [-301, 300.5, 86_400])
def test_form_b_is_not_good_after_five_minutes(seconds: float) -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify(build_headers("B"), BODY, [SECRET], NOW + seconds)


def test_form_a_never_expires() -> None:
    signing.verify(build_headers("A"), BODY, [SECRET], NOW + 10**9)


@pytest.mark.parametrize(("form", "required"), [("A", "B"), ("B", "A"), ("A", "a"), ("B", "")])
def test_a_required_form_is_the_only_one_accepted(form: str, required: str) -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify(build_headers(form), BODY, [SECRET], NOW, form=required)


@pytest.mark.parametrize("form", ["A", "B"])
def test_the_header_of_the_timestamp_may_be_missing(form: str) -> None:
    signing.verify({signing.SIGNATURE: build_headers(form)[signing.SIGNATURE]}, BODY, [SECRET], NOW)


@pytest.mark.parametrize("timestamp", [str(NOW + 1), f"0{NOW}", f"{NOW} ", "", "now", "1" * 5000, "١٧٠٠٠٠٠٠٠٠"])
def test_both_timestamps_of_form_b_must_be_the_same(timestamp: str) -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify(build_headers("B", **{signing.TIMESTAMP: timestamp}), BODY, [SECRET], NOW)


def test_the_signed_timestamp_cannot_be_moved() -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify({signing.SIGNATURE: f"t={NOW + 600},s={HEX_B}"}, BODY, [SECRET], NOW + 600)


@pytest.mark.parametrize(
    "request_headers",
    [
        {},
        *(
            {signing.SIGNATURE: value}
            for value in [
                "",
                "\0",
                HEX_A,
                "sha256=",
                f"sha256={HEX_A[:-1]}",
                f"sha256={HEX_A}0",
                f"sha256={HEX_A}\n",
                f" sha256={HEX_A}",
                f"sha256={HEX_A.upper()}",
                f"SHA256={HEX_A}",
                f"sha1={HEX_A}",
                f"sha256={HEX_A}\0",
                f"sha256={HEX_A[:-1]}é",
                f"sha256={HEX_A[:-1]}\udcff",
                f"sha256={'٣' * 64}",
                f"sha256={HEX_A},sha256={HEX_A}",
                f"sha256={HEX_A}, t={NOW},s={HEX_B}",
                f"t={NOW}",
                f"t={NOW},s=",
                f"t={NOW}, s={HEX_B}",
                f"s={HEX_B},t={NOW}",
                f"t={NOW},t={NOW},s={HEX_B}",
                f"t=,s={HEX_B}",
                f"t=-{NOW},s={HEX_B}",
                f"t=+{NOW},s={HEX_B}",
                f"t=0{NOW},s={HEX_B}",
                f"t={NOW}.0,s={HEX_B}",
                f"t=17e8,s={HEX_B}",
                f"t=1_700_000_000,s={HEX_B}",
                f"t=١٧٠٠٠٠٠٠٠٠,s={HEX_B}",
                f"t={'9' * 5000},s={HEX_B}",
                f"t={'9' * 12},s={HEX_B}",
                f"t={NOW},s={'é' * 64}",
                "a" * 1_000_000,
            ]
        ),
        {signing.SIGNATURE: f"sha256={HEX_A}", signing.SIGNATURE.lower(): f"sha256={HEX_A}"},
        {signing.SIGNATURE: f"t={NOW},s={HEX_B}", signing.SIGNATURE.upper(): f"t={NOW},s={'0' * 64}"},
        {signing.SIGNATURE: f"t={NOW},s={HEX_B}", signing.TIMESTAMP: str(NOW), signing.TIMESTAMP.lower(): "0"},
    ],
    ids=lambda request_headers: ascii(request_headers)[:60],
)
def test_headers_of_any_kind_are_refused_in_one_way(request_headers: Mapping[str, str]) -> None:
    with pytest.raises(signing.InvalidSignature):
        signing.verify(request_headers, BODY, [SECRET], NOW)


def test_an_empty_key_signs_nothing() -> None:
    forged_signature = hmac.digest(b"", BODY, "sha256").hex()
    with pytest.raises(signing.InvalidSignature):
        signing.verify({signing.SIGNATURE: f"sha256={forged_signature}"}, BODY, [SECRET], NOW)


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
