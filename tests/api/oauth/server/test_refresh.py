"""How refresh tokens work and how long a grant lasts (specification, Section 5; RFC 6749, 6)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, RefreshToken

from tests.support.forged_tokens import decode_token
from tests.support.oauth_flows import (
    INVALID_GRANT,
    INVALID_REQUEST,
    INVALID_SCOPE,
    build_refresh_request,
    create_confidential_app,
    create_public_app,
    create_reader,
    find_granted_scope,
    obtain_tokens,
    parse_oauth_error,
)


def send_refresh(api: httpx.Client, application: Application, token: str, **changes: str | None) -> httpx.Response:
    return api.post("/oauth/refresh", data=build_refresh_request(application, token, **changes))


def refresh(api: httpx.Client, application: Application, token: str, **changes: str | None) -> dict[str, Any]:
    response = send_refresh(api, application, token, **changes)
    assert response.status_code == 200, response.text
    fields: dict[str, Any] = response.json()
    return fields


def read_scope(api: httpx.Client, tokens: dict[str, Any]) -> str | None:
    return find_granted_scope(api, tokens["access_token"])


@pytest.mark.parametrize(
    ("endpoint", "create_app"), [("/oauth/refresh", create_confidential_app), ("/oauth/token", create_public_app)]
)
def test_only_a_public_app_gets_a_new_refresh_token(
    api: httpx.Client, endpoint: str, create_app: Callable[[], Application], librarian: User
) -> None:
    app = create_app()
    first = obtain_tokens(api, librarian, app)
    token, (_, before) = first["refresh_token"], decode_token(first["access_token"])
    for _ in range(2):
        response = api.post(endpoint, data=build_refresh_request(app, token))
        body = response.json()
        # A client that stores only the newest response keeps what is unchanged, too.
        kept = {"refresh_token": body["refresh_token"], "scope": "read write"}
        assert response.status_code == 200
        assert body == {"access_token": body["access_token"], "token_type": "Bearer", "expires_in": 3600, **kept}
        assert read_scope(api, body) == "read write"
        assert (body["refresh_token"] != token) == (app.client_type == "public")
        token = body["refresh_token"]
        # The tokens are of the same grant.
        _, after = decode_token(body["access_token"])
        assert after == {**before, **{name: after[name] for name in ("jti", "iat", "exp")}}
        assert (after["jti"] != before["jti"], after["exp"]) == (True, after["iat"] + 3600)
    assert read_scope(api, first) == "read write"


def test_a_text_that_is_no_refresh_token_is_refused(api: httpx.Client, shelf: Application) -> None:
    access_token = obtain_tokens(api, create_reader(), shelf)["access_token"]
    errors = {access_token: INVALID_GRANT, "é": INVALID_GRANT, "x" * 100_000: INVALID_GRANT, None: INVALID_REQUEST}
    forms = [build_refresh_request(shelf, "x", refresh_token=text) for text in errors]
    assert [parse_oauth_error(api.post("/oauth/refresh", data=form)) for form in forms] == list(errors.values())
    assert parse_oauth_error(send_refresh(api, shelf, "nonsense", grant_type=None)) == INVALID_REQUEST
    for grant_type in ("authorization_code", "Refresh_Token"):
        response = send_refresh(api, shelf, "nonsense", grant_type=grant_type, code="x")
        assert parse_oauth_error(response) == (400, "unsupported_grant_type"), grant_type


def test_a_token_of_another_app_is_refused_and_stays_valid(api: httpx.Client, shelf: Application) -> None:
    token = obtain_tokens(api, create_reader(), shelf)["refresh_token"]
    for thief in (create_confidential_app("reseller"), create_public_app("thief")):
        assert parse_oauth_error(send_refresh(api, thief, token)) == INVALID_GRANT
    refresh(api, shelf, token)


def test_no_more_is_granted_than_the_person_allowed(api: httpx.Client, shelf: Application, librarian: User) -> None:
    token = obtain_tokens(api, librarian, shelf, scope="read")["refresh_token"]
    for wider in ("read write", "nonsense"):
        assert parse_oauth_error(send_refresh(api, shelf, token, scope=wider)) == INVALID_SCOPE
    assert read_scope(api, refresh(api, shelf, token)) == "read"
    # An app may request fewer scopes, and later all again.
    token = obtain_tokens(api, librarian, shelf)["refresh_token"]
    for requested, granted in (("read", "read"), (None, "read write"), ("write read", "read write")):
        tokens = refresh(api, shelf, token, scope=requested)
        assert read_scope(api, tokens) == granted
        token = tokens["refresh_token"]


def test_a_lost_role_or_allowance_narrows_and_a_regained_role_widens_again(
    api: httpx.Client, shelf: Application, librarian: User
) -> None:
    group = Group.objects.get(name="Librarians")
    first, writing = obtain_tokens(api, librarian, shelf), obtain_tokens(api, librarian, shelf, scope="write")
    librarian.groups.remove(group)
    narrow = refresh(api, shelf, first["refresh_token"])
    assert read_scope(api, narrow) == "read"
    assert parse_oauth_error(send_refresh(api, shelf, writing["refresh_token"])) == INVALID_SCOPE
    librarian.groups.add(group)
    assert read_scope(api, refresh(api, shelf, narrow["refresh_token"])) == "read write"
    assert read_scope(api, refresh(api, shelf, writing["refresh_token"])) == "write"
    other = obtain_tokens(api, librarian, shelf)["refresh_token"]
    shelf.allowance.scopes = "read"
    shelf.allowance.save()
    assert read_scope(api, refresh(api, shelf, other)) == "read"


def test_a_reused_token_ends_its_family_and_no_other_grant(api: httpx.Client, shelf: Application) -> None:
    """RFC 9700, 4.14.2."""
    user = create_reader()
    other = obtain_tokens(api, user, shelf)
    first = obtain_tokens(api, user, shelf)
    second = refresh(api, shelf, first["refresh_token"])
    third = refresh(api, shelf, second["refresh_token"])
    assert parse_oauth_error(send_refresh(api, create_public_app("thief"), first["refresh_token"])) == INVALID_GRANT
    assert read_scope(api, third) == "read"
    assert parse_oauth_error(send_refresh(api, shelf, first["refresh_token"])) == INVALID_GRANT
    assert parse_oauth_error(send_refresh(api, shelf, third["refresh_token"])) == INVALID_GRANT
    assert [read_scope(api, tokens) for tokens in (first, second, third, other)] == [None, None, None, "read"]
    refresh(api, shelf, other["refresh_token"])


def test_a_grant_ends_thirty_days_after_its_last_access_token(api: httpx.Client, app: Application) -> None:
    token = obtain_tokens(api, create_reader(), app)["refresh_token"]
    for idle in (timedelta(days=29), timedelta(days=30, minutes=-1)):
        # The token of the refresh before is the last one.
        AccessToken.objects.filter(expires__gt=timezone.now()).update(expires=timezone.now() - idle)
        token = refresh(api, app, token)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=30))
    assert parse_oauth_error(send_refresh(api, app, token)) == INVALID_GRANT


def test_refresh_tokens_are_not_stored(api: httpx.Client, shelf: Application) -> None:
    tokens = obtain_tokens(api, create_reader(), shelf)
    assert tokens["refresh_token"] not in RefreshToken.objects.values_list("token", flat=True)
    assert tokens["access_token"] not in AccessToken.objects.values_list("token", flat=True)
