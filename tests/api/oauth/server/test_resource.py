"""The responses of /oauth/resource (specification, Section 5), and which tokens are valid (RFC 9068, 4)."""

import json
import time
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from joserfc.jwk import RSAKey

from oauth.authentication import build_challenge
from oauth.tokens import jwks
from tests.support.forged_tokens import build_claims, decode_part, decode_token, encode_part, forge_token
from tests.support.oauth_flows import (
    build_bearer_header,
    create_confidential_app,
    create_librarian,
    create_reader,
    obtain_tokens,
    parse_oauth_error,
)

RESOURCE = "/oauth/resource"
CHALLENGE = build_challenge()
INVALID = build_challenge(error="invalid_token")


@pytest.fixture
def user(db: None) -> User:
    return create_librarian()


def request_resource(api: httpx.Client, token: str) -> tuple[int, str | None]:
    return parse_oauth_error(api.get(RESOURCE, headers=build_bearer_header(token)))


def test_the_response_names_the_user_and_the_scopes(api: httpx.Client, user: User) -> None:
    token = obtain_tokens(api, user, create_confidential_app())["access_token"]
    response = api.get(RESOURCE, headers=build_bearer_header(token))
    assert response.status_code == 200
    assert response.json() == {
        "user_id": str(user.pk),
        "scope": "read write",
        "message": "This token is good for the library.",
    }
    assert response.headers["Cache-Control"] == "no-store"
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(api: httpx.Client, user: User, scheme: str) -> None:
    token = obtain_tokens(api, user, create_confidential_app())["access_token"]
    assert api.get(RESOURCE, headers={"Authorization": f"{scheme} {token}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic Ym9va3Nob3A6c2VjcmV0"},
        {"Authorization": "Token abc"},
        {"X-API-Key": "lib_0123456789ab_" + "x" * 43},
    ],
)
def test_a_missing_token_is_reported(api: httpx.Client, headers: dict[str, str]) -> None:
    response = api.get(RESOURCE, headers=headers)
    assert parse_oauth_error(response) == (401, "missing_token")
    assert response.headers["WWW-Authenticate"] == CHALLENGE
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("name", ["access_token", "token", "Authorization"])
def test_a_token_in_the_query_is_not_read(api: httpx.Client, user: User, name: str) -> None:
    token = obtain_tokens(api, user, create_confidential_app())["access_token"]
    assert parse_oauth_error(api.get(RESOURCE, params={name: token})) == (401, "missing_token")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_reading_is_allowed(api: httpx.Client, user: User, method: str) -> None:
    token = obtain_tokens(api, user, create_confidential_app())["access_token"]
    assert api.request(method, RESOURCE, headers=build_bearer_header(token)).status_code == 405


@pytest.mark.parametrize("age", [3600, 3601, 10**6])
def test_an_expired_token_is_reported(api: httpx.Client, user: User, age: int) -> None:
    now = int(time.time())
    response = api.get(
        RESOURCE, headers=build_bearer_header(forge_token(build_claims(user.pk, iat=now - age, exp=now - age + 3600)))
    )
    assert parse_oauth_error(response) == (401, "token_expired")
    assert response.headers["WWW-Authenticate"] == INVALID


@pytest.mark.parametrize(
    "token",
    [
        "nonsense",
        "a.b",
        "a.b.c",
        "...",
        "e30.e30.",
        "a b",
        "x" * 100_000,
        "ey" + "." * 1000,
        "A" * 4000,
        "[" * 4000,
        encode_part(b"[" * 2500) + ".e30.e30",
        encode_part(b'{"alg":"RS256","kid":[1]}') + ".e30.e30",
        encode_part(b'{"alg":"RS256","kid":{"a":1}}') + ".e30.e30",
        encode_part(b'{"alg":1,"typ":2,"kid":3}') + ".e30.e30",
        encode_part(b"[]") + ".e30.e30",
        encode_part(b"null") + ".e30.e30",
        encode_part(b'{"alg":"RS256"}') + ".e30.e30.e30.e30",
    ],
)
def test_a_text_that_is_no_token_is_refused(api: httpx.Client, db: None, token: str) -> None:
    response = api.get(RESOURCE, headers=build_bearer_header(token))
    assert parse_oauth_error(response) == (401, "invalid_token")
    assert response.headers["WWW-Authenticate"] == INVALID


def test_an_unchanged_forged_token_is_accepted(api: httpx.Client, user: User) -> None:
    """Shows that each other forged token is refused only for its change."""
    assert request_resource(api, forge_token(build_claims(user.pk))) == (200, None)


def test_the_media_type_may_be_written_in_full(api: httpx.Client, user: User) -> None:
    """RFC 9068, 4."""
    assert request_resource(api, forge_token(build_claims(user.pk), typ="application/at+jwt")) == (200, None)
    assert request_resource(api, forge_token(build_claims(user.pk), typ="AT+JWT")) == (200, None)


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT"},
        {"typ": None},
        {"typ": ""},
        {"typ": 1},
        {"typ": ["at+jwt"]},
        {"kid": "unknown"},
        {"kid": None},
        {"kid": 1},
        {"kid": "../../../etc/passwd"},
        {"alg": "RS384"},
        {"alg": "RS512"},
        {"alg": "PS256"},
        {"crit": ["exp"], "exp": 1},
        {"crit": ["b64"], "b64": True},
        {"crit": []},
    ],
)
def test_another_header_is_refused(api: httpx.Client, user: User, header: dict[str, Any]) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk), **header)) == (401, "invalid_token")


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", ""])
@pytest.mark.parametrize("signature", ["", "AAAA"])
def test_a_token_without_a_signature_is_refused(api: httpx.Client, user: User, algorithm: str, signature: str) -> None:
    head, _, _ = forge_token(build_claims(user.pk), alg=algorithm).rpartition(".")
    assert request_resource(api, f"{head}.{signature}") == (401, "invalid_token")


def export_public_pem() -> bytes:
    return jwks.get_keys().signing_key.as_pem(private=False)


def export_public_jwk() -> bytes:
    return json.dumps(jwks.get_keys().signing_key.as_dict(private=False)).encode()


def read_published_jwk() -> bytes:
    return json.dumps(jwks.build_public_jwks(jwks.get_keys(), time.time())["keys"][0]).encode()


@pytest.mark.parametrize(
    "secret", [export_public_pem, export_public_jwk, read_published_jwk, lambda: export_public_pem().strip()]
)
def test_a_token_signed_with_the_public_key_as_secret_is_refused(api: httpx.Client, user: User, secret: Any) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk), secret(), alg="HS256")) == (401, "invalid_token")


def test_a_token_signed_with_another_key_is_refused(api: httpx.Client, user: User) -> None:
    key = RSAKey.generate_key(2048)
    assert request_resource(api, forge_token(build_claims(user.pk), key)) == (401, "invalid_token")
    embedded = forge_token(build_claims(user.pk), key, kid=None, jwk=key.as_dict(private=False))
    assert request_resource(api, embedded) == (401, "invalid_token")


@pytest.mark.parametrize(("name", "value"), [("sub", "0"), ("scope", "read write webhooks"), ("exp", 2**40)])
def test_a_tampered_token_is_refused(api: httpx.Client, user: User, name: str, value: Any) -> None:
    token = obtain_tokens(api, user, create_confidential_app())["access_token"]
    header, _, signature = token.split(".")
    _, claims = decode_token(token)
    payload = encode_part(json.dumps({**claims, name: value}).encode())
    assert request_resource(api, f"{header}.{payload}.{signature}") == (401, "invalid_token")


def test_a_tampered_signature_is_refused(api: httpx.Client, user: User) -> None:
    head, _, signature = obtain_tokens(api, user, create_confidential_app())["access_token"].rpartition(".")
    raw = bytearray(decode_part(signature))
    raw[0] ^= 1
    for forgery in (encode_part(bytes(raw)), "", signature[:-4], f"{signature}AAAA", encode_part(bytes(256))):
        assert request_resource(api, f"{head}.{forgery}") == (401, "invalid_token")


CLAIMS = ["iss", "aud", "sub", "client_id", "scope", "sid", "jti", "iat", "exp"]


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_must_be_there(api: httpx.Client, user: User, name: str) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk, **{name: None}))) == (401, "invalid_token")


@pytest.mark.parametrize("name", ["iss", "aud", "sub", "client_id", "scope", "sid", "jti"])
@pytest.mark.parametrize("value", [["read"], {}, True, 1])
def test_a_text_claim_of_another_type_is_refused(api: httpx.Client, user: User, name: str, value: Any) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk, **{name: value}))) == (401, "invalid_token")


@pytest.mark.parametrize("name", ["iat", "exp", "nbf"])
@pytest.mark.parametrize("value", [[], True, 1e30, "later", str(2**40)])
def test_a_time_that_is_no_integer_is_refused(api: httpx.Client, user: User, name: str, value: Any) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk, **{name: value}))) == (401, "invalid_token")


@pytest.mark.parametrize(
    ("name", "value"),
    [
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
    ],
)
def test_a_claim_with_another_value_is_refused(api: httpx.Client, user: User, name: str, value: Any) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk, **{name: value}))) == (401, "invalid_token")


@pytest.mark.parametrize("payload", [b"", b"null", b"[]", b"1", b'"text"', b"{", b"\xff", b"[" * 2000, b'{"exp": NaN}'])
def test_a_payload_that_is_no_object_is_refused(api: httpx.Client, db: None, payload: bytes) -> None:
    assert request_resource(api, forge_token(payload)) == (401, "invalid_token")


@pytest.mark.parametrize("name", ["iat", "nbf"])
def test_a_small_difference_of_clocks_is_tolerated(api: httpx.Client, user: User, name: str) -> None:
    now = int(time.time())
    claims = build_claims(user.pk, **{name: now + 20}, exp=now + 3620)
    assert request_resource(api, forge_token(claims)) == (200, None)


def test_a_huge_token_is_refused(api: httpx.Client, user: User) -> None:
    assert request_resource(api, forge_token(build_claims(user.pk, extra="x" * 100_000))) == (401, "invalid_token")


def test_two_tokens_in_a_header_are_refused(api: httpx.Client, db: None) -> None:
    token = obtain_tokens(api, create_reader(), create_confidential_app())["access_token"]
    assert request_resource(api, f"{token}, Bearer {token}") == (401, "invalid_token")
