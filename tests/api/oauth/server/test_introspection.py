"""Confidential apps can introspect tokens (RFC 7662), and every app can revoke its own (RFC 7009)."""

import time
from datetime import timedelta
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application

from oauth.models import Authorization
from tests.support.forged_tokens import build_claims, decode_token, forge_token
from tests.support.oauth_flows import (
    INVALID_CLIENT,
    INVALID_REQUEST,
    SECRET,
    build_basic_header,
    build_bearer_header,
    build_refresh_request,
    create_confidential_app,
    create_reader,
    deactivate_without_signal,
    find_granted_scope,
    obtain_tokens,
    parse_oauth_error,
)

ENDPOINT, REVOKE = "/oauth/introspect", "/oauth/revoke"
INACTIVE = {"active": False}
FORM = {"client_id": "bookshop", "client_secret": SECRET}


def introspect(api: httpx.Client, token: str, **fields: str) -> dict[str, Any]:
    response = api.post(ENDPOINT, data={**FORM, "token": token, **fields})
    assert response.status_code == 200, response.text
    description: dict[str, Any] = response.json()
    return description


def test_an_access_token_of_any_app_is_described(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    """A resource server introspects the tokens of other apps."""
    for app, hint in ((bookshop, {}), (shelf, {"token_type_hint": "refresh_token"})):
        token = obtain_tokens(api, librarian, app)["access_token"]
        _, claims = decode_token(token)
        assert introspect(api, token, **hint) == {
            "active": True,
            "token_type": "Bearer",
            "iss": settings.PUBLIC_URL,
            "aud": f"{settings.PUBLIC_URL}/api",
            "sub": str(librarian.pk),
            "client_id": app.client_id,
            "scope": "read write",
            "jti": claims["jti"],
            "iat": claims["iat"],
            "exp": claims["iat"] + 3600,
            "entitlements": claims["entitlements"],
        }


def test_a_refresh_token_is_described_to_its_app_alone(
    api: httpx.Client, bookshop: Application, librarian: User
) -> None:
    token = obtain_tokens(api, librarian, bookshop)["refresh_token"]
    description = introspect(api, token, token_type_hint="access_token")
    assert description == {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(librarian.pk),
        "client_id": "bookshop",
        "scope": "read write",
        "iat": description["iat"],
    }
    assert abs(description["iat"] - time.time()) < 60
    token_of_another = obtain_tokens(api, librarian, create_confidential_app("reseller"))["refresh_token"]
    assert introspect(api, token_of_another) == INACTIVE


def test_an_invalid_token_is_inactive(api: httpx.Client, bookshop: Application, librarian: User) -> None:
    authorization = Authorization.objects.create(
        user=librarian, application=bookshop, scopes="read", created_at=timezone.now()
    )
    valid = build_claims(librarian.pk, sid=str(authorization.pk))
    changes: list[dict[str, Any]] = [{"iat": 1, "exp": 3601}, {"aud": "https://evil.example"}, {"sub": "nobody"}]
    tokens = [forge_token({**valid, **change}) for change in ({}, *changes)]
    assert [introspect(api, token)["active"] for token in tokens] == [True, False, False, False]
    for token in ("nonsense", "a.b.c", "é", "x" * 100_000, " "):
        assert introspect(api, token) == INACTIVE, token[:9]
    response = api.post(ENDPOINT, data={**FORM, "token": "nonsense"})
    assert (response.headers["Cache-Control"], response.headers["Content-Type"]) == ("no-store", "application/json")
    for form in (FORM, {**FORM, "token": ""}):
        assert parse_oauth_error(api.post(ENDPOINT, data=form)) == INVALID_REQUEST


def test_a_lost_role_and_a_revocation_have_effect_immediately(
    api: httpx.Client, bookshop: Application, librarian: User
) -> None:
    tokens = obtain_tokens(api, librarian, bookshop)
    assert "books.add_book" in introspect(api, tokens["access_token"])["entitlements"]
    librarian.groups.set([Group.objects.get(name="Developers")])
    described = introspect(api, tokens["access_token"])
    assert (described["scope"], "entitlements" in described) == ("read", False)
    api.post("/oauth/revoke", data={**FORM, "token": tokens["refresh_token"]})
    assert introspect(api, tokens["access_token"]) == INACTIVE
    assert introspect(api, tokens["refresh_token"]) == INACTIVE


def test_introspection_of_a_rotated_refresh_token_ends_nothing(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    """Introspection is not a reuse of the token."""
    first = obtain_tokens(api, librarian, shelf)
    second = api.post("/oauth/refresh", data=build_refresh_request(shelf, first["refresh_token"])).json()
    assert introspect(api, first["refresh_token"]) == INACTIVE
    assert api.post("/oauth/refresh", data=build_refresh_request(shelf, second["refresh_token"])).status_code == 200


def test_the_refresh_token_of_a_grant_that_is_over_is_inactive(
    api: httpx.Client, bookshop: Application, librarian: User
) -> None:
    token = obtain_tokens(api, librarian, bookshop)["refresh_token"]
    now = timezone.now()
    assert introspect(api, token)["active"] is True
    AccessToken.objects.update(expires=now - timedelta(days=30))
    assert introspect(api, token) == INACTIVE
    AccessToken.objects.update(expires=now)
    Authorization.objects.update(created_at=now - timedelta(days=90))
    assert introspect(api, token) == INACTIVE
    Authorization.objects.update(created_at=now)
    deactivate_without_signal(librarian)
    assert introspect(api, token) == INACTIVE


def test_only_confidential_apps_may_ask(api: httpx.Client, bookshop: Application, shelf: Application) -> None:
    token = obtain_tokens(api, create_reader(), shelf)["access_token"]
    assert api.post(ENDPOINT, data={"token": token}, headers=build_basic_header("bookshop", SECRET)).json()["active"]
    bearer = build_bearer_header(token)
    for client, headers in (({}, bearer), ({"client_id": "bookshop"}, {}), ({"client_id": "shelf"}, bearer)):
        response = api.post(ENDPOINT, data={**client, "token": token}, headers=headers)
        assert parse_oauth_error(response) == INVALID_CLIENT, client


def build_form(application: Application, token: str, /, **fields: str) -> dict[str, str]:
    secret = {} if application.client_type == "public" else {"client_secret": SECRET}
    return {"client_id": application.client_id, **secret, "token": token, **fields}


def check_tokens(api: httpx.Client, application: Application, tokens: dict[str, Any]) -> tuple[bool, bool]:
    """Tells whether the access token is accepted, and whether the refresh token is."""
    refresh_response = api.post("/oauth/refresh", data=build_refresh_request(application, tokens["refresh_token"]))
    return bool(find_granted_scope(api, tokens["access_token"])), refresh_response.status_code == 200


def test_either_token_ends_both_whatever_is_said_of_it(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    other = obtain_tokens(api, librarian, shelf)
    for app, kind, hint in (
        (bookshop, "access_token", {}),
        (bookshop, "refresh_token", {"token_type_hint": "nonsense"}),
        (shelf, "access_token", {"token_type_hint": "refresh_token"}),
        (shelf, "refresh_token", {"token_type_hint": "access_token"}),
    ):
        tokens = obtain_tokens(api, librarian, app)
        # A token can be revoked twice.
        for _ in range(2):
            response = api.post(REVOKE, data=build_form(app, tokens[kind], **hint))
            assert (response.status_code, response.text) == (200, ""), (kind, hint)
            assert response.headers["Cache-Control"] == "no-store"
        assert check_tokens(api, app, tokens) == (False, False), (kind, hint)
    # No other grant ends.
    assert check_tokens(api, shelf, other) == (True, True)


def test_unknown_forged_and_foreign_tokens_end_nothing(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    tokens = obtain_tokens(api, librarian, bookshop)
    unsigned = tokens["access_token"].rpartition(".")[0] + "."
    forged = forge_token(build_claims(librarian.pk, client_id=bookshop.client_id))
    texts = [(bookshop, token) for token in ("nonsense", "é", "x" * 100_000, unsigned, forged)]
    reseller = create_confidential_app("reseller")
    for app, token in (*texts, (reseller, tokens["access_token"]), (shelf, tokens["refresh_token"])):
        response = api.post(REVOKE, data=build_form(app, token))
        assert (response.status_code, response.text) == (200, "")
    assert check_tokens(api, bookshop, tokens) == (True, True)


def test_a_rotated_token_ends_its_grant_too(api: httpx.Client, shelf: Application, librarian: User) -> None:
    first = obtain_tokens(api, librarian, shelf)
    second = api.post("/oauth/refresh", data=build_refresh_request(shelf, first["refresh_token"])).json()
    api.post(REVOKE, data=build_form(shelf, first["refresh_token"]))
    assert check_tokens(api, shelf, second) == (False, False)


def test_a_token_is_required(api: httpx.Client, shelf: Application) -> None:
    for form in ({}, {"token": ""}):
        assert parse_oauth_error(api.post(REVOKE, data={"client_id": "shelf", **form})) == INVALID_REQUEST
