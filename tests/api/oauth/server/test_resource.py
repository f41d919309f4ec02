"""The responses of /oauth/resource (specification, Section 5), and which tokens are valid (RFC 9068, 4)."""

import json
import time
from itertools import product
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth.models import User
from joserfc.jwk import RSAKey

from oauth.credentials import build_challenge
from oauth.tokens import jwks
from tests.support.forged_tokens import build_claims, decode_part, encode_part, forge_token
from tests.support.oauth_flows import (
    INVALID_TOKEN,
    build_bearer_header,
    create_confidential_app,
    obtain_tokens,
    parse_oauth_error,
)

RESOURCE = "/oauth/resource"
CHALLENGE = build_challenge()
INVALID = build_challenge(error="invalid_token")


def request_resource(api: httpx.Client, token: str) -> tuple[int, str | None]:
    return parse_oauth_error(api.get(RESOURCE, headers=build_bearer_header(token)))


def test_the_response_names_the_user_and_the_scopes(api: httpx.Client, librarian: User) -> None:
    token = obtain_tokens(api, librarian, create_confidential_app())["access_token"]
    response = api.get(RESOURCE, headers={"Authorization": f"BEARER {token}"})
    assert response.status_code == 200
    assert response.json() == {
        "user_id": str(librarian.pk),
        "scope": "read write",
        "message": "This token is good for the library.",
    }
    assert response.headers["Cache-Control"] == "no-store"
    assert "WWW-Authenticate" not in response.headers


def test_a_missing_token_is_reported(api: httpx.Client, librarian: User) -> None:
    """A token in the query is not read."""
    address = f"{RESOURCE}?access_token={forge_token(build_claims(librarian.pk))}"
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic Ym9va3Nob3A6c2VjcmV0"},
        {"X-API-Key": "lib_0123456789ab_" + "x" * 43},
    ):
        response = api.get(address, headers=headers)
        assert parse_oauth_error(response) == (401, "missing_token"), headers
        assert response.headers["WWW-Authenticate"] == CHALLENGE
        assert response.headers["Cache-Control"] == "no-store"


def test_an_expired_token_is_reported(api: httpx.Client, librarian: User) -> None:
    issued_at = int(time.time()) - 3600
    token = forge_token(build_claims(librarian.pk, iat=issued_at, exp=issued_at + 3600))
    response = api.get(RESOURCE, headers=build_bearer_header(token))
    assert parse_oauth_error(response) == (401, "token_expired")
    assert response.headers["WWW-Authenticate"] == INVALID


def test_a_text_that_is_no_token_is_refused(api: httpx.Client, librarian: User) -> None:
    valid = forge_token(build_claims(librarian.pk))
    for token in (
        "nonsense",
        "...",
        "ey" + "." * 1000,
        encode_part(b"[" * 2500) + ".e30.e30",
        encode_part(b'{"alg":"RS256","kid":[1]}') + ".e30.e30",
        encode_part(b'{"alg":1,"typ":2,"kid":3}') + ".e30.e30",
        encode_part(b"[]") + ".e30.e30",
        f"{valid}, Bearer {valid}",
        forge_token(build_claims(librarian.pk, extra="x" * 100_000)),
    ):
        response = api.get(RESOURCE, headers=build_bearer_header(token))
        assert parse_oauth_error(response) == INVALID_TOKEN, token[:99]
        assert response.headers["WWW-Authenticate"] == INVALID


def test_another_header_is_refused(api: httpx.Client, librarian: User) -> None:
    """RFC 9068, 4: the type may be in full."""
    valid: list[dict[str, Any]] = [{}, {"typ": "application/at+jwt"}, {"typ": "AT+JWT"}]
    for header in valid:
        assert request_resource(api, forge_token(build_claims(librarian.pk), **header)) == (200, None), header
    headers: list[dict[str, Any]] = [
        {"typ": "JWT"},
        {"typ": None},
        {"typ": ["at+jwt"]},
        {"kid": "unknown"},
        {"kid": None},
        {"alg": "RS384"},
        {"alg": "PS256"},
        {"crit": ["exp"], "exp": 1},
        {"crit": []},
    ]
    for header in headers:
        assert request_resource(api, forge_token(build_claims(librarian.pk), **header)) == INVALID_TOKEN, header


def test_a_token_without_a_signature_is_refused(api: httpx.Client, librarian: User) -> None:
    for algorithm in ("none", "None", "NONE", ""):
        head, _, _ = forge_token(build_claims(librarian.pk), alg=algorithm).rpartition(".")
        responses = [request_resource(api, f"{head}.{signature}") for signature in ("", "AAAA")]
        assert responses == [INVALID_TOKEN] * 2


def test_a_token_signed_with_the_public_key_as_secret_is_refused(api: httpx.Client, librarian: User) -> None:
    keys = jwks.get_keys()
    public_pem = keys.signing_key.as_pem(private=False)
    published = json.dumps(jwks.build_public_jwks(keys, time.time())["keys"][0]).encode()
    for secret in (public_pem, public_pem.strip(), published):
        assert request_resource(api, forge_token(build_claims(librarian.pk), secret, alg="HS256")) == INVALID_TOKEN


def test_a_token_signed_with_another_key_is_refused(api: httpx.Client, librarian: User) -> None:
    key = RSAKey.generate_key(2048)
    assert request_resource(api, forge_token(build_claims(librarian.pk), key)) == INVALID_TOKEN
    embedded = forge_token(build_claims(librarian.pk), key, kid=None, jwk=key.as_dict(private=False))
    assert request_resource(api, embedded) == INVALID_TOKEN


def test_a_tampered_signature_is_refused(api: httpx.Client, librarian: User) -> None:
    head, _, signature = forge_token(build_claims(librarian.pk)).rpartition(".")
    raw = bytearray(decode_part(signature))
    raw[0] ^= 1
    for forgery in (encode_part(bytes(raw)), "", signature[:-4], f"{signature}AAAA", encode_part(bytes(256))):
        assert request_resource(api, f"{head}.{forgery}") == INVALID_TOKEN


TEXT_CLAIMS, TIME_CLAIMS = ["iss", "aud", "sub", "client_id", "scope", "sid", "jti"], ["iat", "exp"]
CHANGED_CLAIMS: list[tuple[str, Any]] = [
    # None leaves a claim out.
    *product([*TEXT_CLAIMS, *TIME_CLAIMS], [None]),
    *product(TEXT_CLAIMS, [["read"], {}, True, 1]),
    *product([*TIME_CLAIMS, "nbf"], [[], True, 1e30, "later", str(2**40)]),
    ("iss", "https://evil.example"),
    ("iss", f"{settings.PUBLIC_URL}/"),
    ("iss", [settings.PUBLIC_URL]),
    ("aud", settings.PUBLIC_URL),
    ("aud", "https://evil.example/api"),
    ("sub", "reader"),
    ("sub", "9" * 3000),
    ("sid", "nonsense"),
    ("scope", ""),
    ("scope", "nonsense"),
    ("iat", int(time.time()) + 3600),
    ("nbf", int(time.time()) + 3600),
]


def test_a_claim_that_is_missing_or_has_another_value_is_refused(api: httpx.Client, librarian: User) -> None:
    tokens = {str(change): forge_token(build_claims(librarian.pk, **dict([change]))) for change in CHANGED_CLAIMS}
    assert [change for change, token in tokens.items() if request_resource(api, token) != INVALID_TOKEN] == []


def test_a_payload_that_is_no_object_is_refused(api: httpx.Client, db: None) -> None:
    for payload in (b"", b"null", b"[]", b"1", b'"text"', b"{", b"\xff", b"[" * 2000, b'{"exp": NaN}'):
        assert request_resource(api, forge_token(payload)) == INVALID_TOKEN, payload[:9]


def test_a_small_difference_of_clocks_is_tolerated(api: httpx.Client, librarian: User) -> None:
    soon = int(time.time()) + 20
    claims = build_claims(librarian.pk, iat=soon, nbf=soon, exp=soon + 3600)
    assert request_resource(api, forge_token(claims)) == (200, None)
