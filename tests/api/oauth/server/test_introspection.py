"""Confidential apps can introspect tokens (RFC 7662)."""

import base64
import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application

from oauth.models import Authorization
from tests.support.forged_tokens import build_claims, decode_token, forge_token
from tests.support.oauth_flows import (
    SECRET,
    build_refresh_request,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    obtain_tokens,
    parse_oauth_error,
)

ENDPOINT = "/oauth/introspect"
INACTIVE = {"active": False}
FORM = {"client_id": "bookshop", "client_secret": SECRET}


@pytest.fixture
def bookshop(db: None) -> Application:
    return create_confidential_app()


@pytest.fixture
def user(db: None) -> User:
    return create_librarian()


def introspect(api: httpx.Client, token: str, **fields: str) -> dict[str, Any]:
    response = api.post(ENDPOINT, data={**FORM, "token": token, **fields})
    assert response.status_code == 200, response.text
    description: dict[str, Any] = response.json()
    return description


@pytest.mark.parametrize("hint", [{}, {"token_type_hint": "refresh_token"}, {"token_type_hint": "nonsense"}])
def test_an_access_token_is_described(
    api: httpx.Client, bookshop: Application, user: User, hint: dict[str, str]
) -> None:
    token = obtain_tokens(api, user, bookshop)["access_token"]
    _, claims = decode_token(token)
    assert introspect(api, token, **hint) == {
        "active": True,
        "token_type": "Bearer",
        "iss": settings.PUBLIC_URL,
        "aud": f"{settings.PUBLIC_URL}/api",
        "sub": str(user.pk),
        "client_id": "bookshop",
        "scope": "read write",
        "jti": claims["jti"],
        "iat": claims["iat"],
        "exp": claims["iat"] + 3600,
    }


@pytest.mark.parametrize("hint", [{}, {"token_type_hint": "access_token"}])
def test_a_refresh_token_is_described_to_its_app(
    api: httpx.Client, bookshop: Application, user: User, hint: dict[str, str]
) -> None:
    token = obtain_tokens(api, user, bookshop)["refresh_token"]
    description = introspect(api, token, **hint)
    assert description == {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(user.pk),
        "client_id": "bookshop",
        "scope": "read write",
        "iat": description["iat"],
    }
    assert abs(description["iat"] - time.time()) < 60


def test_responses_are_not_cached(api: httpx.Client, bookshop: Application) -> None:
    response = api.post(ENDPOINT, data={**FORM, "token": "nonsense"})
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Type"] == "application/json"


def test_an_access_token_of_another_app_is_described(api: httpx.Client, bookshop: Application, user: User) -> None:
    """A resource server introspects the tokens of other apps."""
    token = obtain_tokens(api, user, create_public_app())["access_token"]
    assert introspect(api, token)["client_id"] == "shelf"


def test_a_refresh_token_of_another_app_is_inactive(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = obtain_tokens(api, user, create_confidential_app("reseller"))["refresh_token"]
    assert introspect(api, token) == INACTIVE


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "é", "x" * 100_000, " "])
def test_other_texts_are_inactive(api: httpx.Client, bookshop: Application, token: str) -> None:
    assert introspect(api, token) == INACTIVE


@pytest.mark.parametrize("changes", [{"iat": 1, "exp": 3601}, {"aud": "https://evil.example"}, {"sub": "nobody"}])
def test_an_invalid_token_is_inactive(
    api: httpx.Client, bookshop: Application, user: User, changes: dict[str, Any]
) -> None:
    authorization = Authorization.objects.create(
        user=user, application=bookshop, scopes="read", created_at=timezone.now()
    )
    valid = build_claims(user.pk, sid=str(authorization.pk))
    assert introspect(api, forge_token({**valid, **changes})) == INACTIVE
    assert introspect(api, forge_token(valid))["active"] is True


def test_a_revoked_token_is_inactive_immediately(api: httpx.Client, bookshop: Application, user: User) -> None:
    tokens = obtain_tokens(api, user, bookshop)
    assert introspect(api, tokens["access_token"])["active"] is True
    api.post("/oauth/revoke", data={**FORM, "token": tokens["refresh_token"]})
    assert introspect(api, tokens["access_token"]) == INACTIVE
    assert introspect(api, tokens["refresh_token"]) == INACTIVE


def test_introspection_of_a_rotated_refresh_token_ends_nothing(
    api: httpx.Client, bookshop: Application, user: User
) -> None:
    """Introspection is not a reuse of the token."""
    shelf = create_public_app()
    first = obtain_tokens(api, user, shelf)
    second = api.post("/oauth/refresh", data=build_refresh_request(shelf, first["refresh_token"])).json()
    assert introspect(api, first["refresh_token"]) == INACTIVE
    assert api.post("/oauth/refresh", data=build_refresh_request(shelf, second["refresh_token"])).status_code == 200


def test_a_lost_role_has_effect_immediately(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = obtain_tokens(api, user, bookshop)["access_token"]
    user.groups.clear()
    assert introspect(api, token)["scope"] == "read"


def test_an_idle_refresh_token_is_inactive(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = obtain_tokens(api, user, bookshop)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30))
    assert introspect(api, token) == INACTIVE


def test_a_refresh_token_is_inactive_after_ninety_days(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = obtain_tokens(api, user, bookshop)["refresh_token"]
    Authorization.objects.update(created_at=timezone.now() - timedelta(days=90))
    assert introspect(api, token) == INACTIVE


def test_tokens_of_a_deactivated_user_are_inactive(api: httpx.Client, bookshop: Application, user: User) -> None:
    tokens = obtain_tokens(api, user, bookshop)
    user.is_active = False
    user.save()
    assert introspect(api, tokens["access_token"]) == INACTIVE
    assert introspect(api, tokens["refresh_token"]) == INACTIVE


@pytest.mark.parametrize(
    "client",
    [
        {},
        {"client_id": "bookshop"},
        {"client_id": "bookshop", "client_secret": "wrong"},
        {"client_id": "bookshop", "client_secret": ""},
        {"client_id": "nobody", "client_secret": SECRET},
        {"client_id": "shelf"},
        {"client_id": "shelf", "client_secret": ""},
        {"client_id": "shelf", "client_secret": "guess"},
    ],
)
def test_only_confidential_apps_may_ask(
    api: httpx.Client, bookshop: Application, user: User, client: dict[str, str]
) -> None:
    token = obtain_tokens(api, user, create_public_app())["access_token"]
    response = api.post(ENDPOINT, data={**client, "token": token})
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize("credentials", ["shelf:", "shelf:guess", "bookshop:wrong", "nobody:", ":"])
def test_a_failed_basic_authentication_is_challenged_with_basic(
    api: httpx.Client, bookshop: Application, user: User, credentials: str
) -> None:
    token = obtain_tokens(api, user, create_public_app())["access_token"]
    headers = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
    response = api.post(ENDPOINT, data={"token": token}, headers=headers)
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
    assert response.headers["WWW-Authenticate"].startswith("Basic ")


def test_a_confidential_app_may_ask_with_basic(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = obtain_tokens(api, user, bookshop)["access_token"]
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    assert api.post(ENDPOINT, data={"token": token}, headers=headers).json()["active"] is True


def test_credentials_in_header_and_body_are_refused(api: httpx.Client, bookshop: Application) -> None:
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    response = api.post(ENDPOINT, data={**FORM, "token": "nonsense"}, headers=headers)
    assert parse_oauth_error(response) == (400, "invalid_request")


def test_a_bearer_token_is_no_credential_of_an_app(api: httpx.Client, bookshop: Application) -> None:
    token = obtain_tokens(api, create_reader(), bookshop)["access_token"]
    response = api.post(ENDPOINT, data={"token": token}, headers={"Authorization": f"Bearer {token}"})
    assert parse_oauth_error(response) == (401, "invalid_client")


@pytest.mark.parametrize("form", [FORM, {**FORM, "token": ""}])
def test_a_token_is_required(api: httpx.Client, bookshop: Application, form: dict[str, str]) -> None:
    assert parse_oauth_error(api.post(ENDPOINT, data=form)) == (400, "invalid_request")
