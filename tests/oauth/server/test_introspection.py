"""What confidential apps are told of tokens (RFC 7662)."""

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
from tests.support.forged_tokens import claims_of, forged, spoken
from tests.support.oauth_flows import (
    SECRET,
    confidential_app,
    librarian,
    public_app,
    reader,
    refreshing,
    refusal,
    tokens_for,
)

ENDPOINT = "/oauth/introspect"
INACTIVE = {"active": False}
FORM = {"client_id": "bookshop", "client_secret": SECRET}


@pytest.fixture
def bookshop(db: None) -> Application:
    return confidential_app()


@pytest.fixture
def user(db: None) -> User:
    return librarian()


def told_of(api: httpx.Client, token: str, **members: str) -> dict[str, Any]:
    answer = api.post(ENDPOINT, data={**FORM, "token": token, **members})
    assert answer.status_code == 200, answer.text
    described: dict[str, Any] = answer.json()
    return described


@pytest.mark.parametrize("hint", [{}, {"token_type_hint": "refresh_token"}, {"token_type_hint": "nonsense"}])
def test_an_access_token_is_described(
    api: httpx.Client, bookshop: Application, user: User, hint: dict[str, str]
) -> None:
    token = tokens_for(api, user, bookshop)["access_token"]
    _, claims = spoken(token)
    assert told_of(api, token, **hint) == {
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
    token = tokens_for(api, user, bookshop)["refresh_token"]
    described = told_of(api, token, **hint)
    assert described == {
        "active": True,
        "iss": settings.PUBLIC_URL,
        "sub": str(user.pk),
        "client_id": "bookshop",
        "scope": "read write",
        "iat": described["iat"],
    }
    assert abs(described["iat"] - time.time()) < 60


def test_answers_are_not_kept(api: httpx.Client, bookshop: Application) -> None:
    answer = api.post(ENDPOINT, data={**FORM, "token": "nonsense"})
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"] == "application/json"


def test_an_access_token_of_another_app_is_described(api: httpx.Client, bookshop: Application, user: User) -> None:
    """A resource server asks about tokens of others."""
    token = tokens_for(api, user, public_app())["access_token"]
    assert told_of(api, token)["client_id"] == "shelf"


def test_a_refresh_token_of_another_app_is_none(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = tokens_for(api, user, confidential_app("reseller"))["refresh_token"]
    assert told_of(api, token) == INACTIVE


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "é", "x" * 100_000, " "])
def test_nothing_is_told_of_what_is_no_token(api: httpx.Client, bookshop: Application, token: str) -> None:
    assert told_of(api, token) == INACTIVE


@pytest.mark.parametrize("changed", [{"iat": 1, "exp": 3601}, {"aud": "https://evil.example"}, {"sub": "nobody"}])
def test_nothing_is_told_of_a_token_that_is_not_good(
    api: httpx.Client, bookshop: Application, user: User, changed: dict[str, Any]
) -> None:
    given = Authorization.objects.create(user=user, application=bookshop, scopes="read", created_at=timezone.now())
    good = claims_of(user.pk, sid=str(given.pk))
    assert told_of(api, forged({**good, **changed})) == INACTIVE
    assert told_of(api, forged(good))["active"] is True


def test_what_was_revoked_is_inactive_at_once(api: httpx.Client, bookshop: Application, user: User) -> None:
    given = tokens_for(api, user, bookshop)
    assert told_of(api, given["access_token"])["active"] is True
    api.post("/oauth/revoke", data={**FORM, "token": given["refresh_token"]})
    assert told_of(api, given["access_token"]) == INACTIVE
    assert told_of(api, given["refresh_token"]) == INACTIVE


def test_a_rotated_refresh_token_is_inactive_and_told_without_harm(
    api: httpx.Client, bookshop: Application, user: User
) -> None:
    """To ask about a token is no reuse of it."""
    shelf = public_app()
    first = tokens_for(api, user, shelf)
    second = api.post("/oauth/refresh", data=refreshing(shelf, first["refresh_token"])).json()
    assert told_of(api, first["refresh_token"]) == INACTIVE
    assert api.post("/oauth/refresh", data=refreshing(shelf, second["refresh_token"])).status_code == 200


def test_a_lost_role_shows_at_once(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = tokens_for(api, user, bookshop)["access_token"]
    user.groups.clear()
    assert told_of(api, token)["scope"] == "read"


def test_an_idle_refresh_token_is_inactive(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = tokens_for(api, user, bookshop)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30))
    assert told_of(api, token) == INACTIVE


def test_a_refresh_token_is_inactive_after_ninety_days(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = tokens_for(api, user, bookshop)["refresh_token"]
    Authorization.objects.update(created_at=timezone.now() - timedelta(days=90))
    assert told_of(api, token) == INACTIVE


def test_tokens_of_the_deactivated_are_inactive(api: httpx.Client, bookshop: Application, user: User) -> None:
    given = tokens_for(api, user, bookshop)
    user.is_active = False
    user.save()
    assert told_of(api, given["access_token"]) == INACTIVE
    assert told_of(api, given["refresh_token"]) == INACTIVE


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
    token = tokens_for(api, user, public_app())["access_token"]
    answer = api.post(ENDPOINT, data={**client, "token": token})
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
    assert "WWW-Authenticate" not in answer.headers


@pytest.mark.parametrize("credentials", ["shelf:", "shelf:guess", "bookshop:wrong", "nobody:", ":"])
def test_who_fails_with_basic_is_asked_for_basic(
    api: httpx.Client, bookshop: Application, user: User, credentials: str
) -> None:
    token = tokens_for(api, user, public_app())["access_token"]
    headers = {"Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
    answer = api.post(ENDPOINT, data={"token": token}, headers=headers)
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


def test_a_confidential_app_may_ask_with_basic(api: httpx.Client, bookshop: Application, user: User) -> None:
    token = tokens_for(api, user, bookshop)["access_token"]
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    assert api.post(ENDPOINT, data={"token": token}, headers=headers).json()["active"] is True


def test_header_and_body_at_once_are_refused(api: httpx.Client, bookshop: Application) -> None:
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    answer = api.post(ENDPOINT, data={**FORM, "token": "nonsense"}, headers=headers)
    assert refusal(answer) == (400, "invalid_request")


def test_a_bearer_token_is_no_credential_of_an_app(api: httpx.Client, bookshop: Application) -> None:
    token = tokens_for(api, reader(), bookshop)["access_token"]
    answer = api.post(ENDPOINT, data={"token": token}, headers={"Authorization": f"Bearer {token}"})
    assert refusal(answer) == (401, "invalid_client")


@pytest.mark.parametrize("form", [FORM, {**FORM, "token": ""}])
def test_a_token_is_required(api: httpx.Client, bookshop: Application, form: dict[str, str]) -> None:
    assert refusal(api.post(ENDPOINT, data=form)) == (400, "invalid_request")
