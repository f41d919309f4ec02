"""An app can revoke its tokens (RFC 7009)."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from oauth2_provider.models import Application

from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    INVALID_REQUEST,
    SECRET,
    build_basic_header,
    build_refresh_request,
    create_confidential_app,
    create_public_app,
    find_granted_scope,
    obtain_tokens,
    parse_oauth_error,
)

ENDPOINT = "/oauth/revoke"


def build_form(application: Application, token: str, /, **fields: str) -> dict[str, str]:
    secret = {} if application.client_type == "public" else {"client_secret": SECRET}
    return {"client_id": application.client_id, **secret, "token": token, **fields}


def check_tokens(api: httpx.Client, application: Application, tokens: dict[str, Any]) -> tuple[bool, bool]:
    """Tells whether the access token is accepted, and whether the refresh token is."""
    refresh_response = api.post("/oauth/refresh", data=build_refresh_request(application, tokens["refresh_token"]))
    return bool(find_granted_scope(api, tokens["access_token"])), refresh_response.status_code == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense", ""])
def test_either_token_ends_both(
    api: httpx.Client, app: Application, librarian: User, kind: str, hint: str | None
) -> None:
    tokens = obtain_tokens(api, librarian, app)
    form = build_form(app, tokens[kind], **({} if hint is None else {"token_type_hint": hint}))
    # A token can be revoked twice.
    for _ in range(2):
        response = api.post(ENDPOINT, data=form)
        assert (response.status_code, response.text) == (200, "")
        assert response.headers["Cache-Control"] == "no-store"
    assert check_tokens(api, app, tokens) == (False, False)


def test_a_revocation_ends_no_other_grant(api: httpx.Client, app: Application, librarian: User) -> None:
    earlier, tokens = obtain_tokens(api, librarian, app), obtain_tokens(api, librarian, app)
    api.post(ENDPOINT, data=build_form(app, tokens["refresh_token"]))
    assert check_tokens(api, app, earlier) == (True, True)
    assert check_tokens(api, app, obtain_tokens(api, librarian, app)) == (True, True)


def test_unknown_and_forged_tokens_end_nothing(api: httpx.Client, app: Application, librarian: User) -> None:
    tokens = obtain_tokens(api, librarian, app)
    unsigned = tokens["access_token"].rpartition(".")[0] + "."
    forged = forge_token(build_claims(librarian.pk, client_id=app.client_id))
    for token in ("nonsense", "a.b.c", "é", "x" * 100_000, unsigned, forged):
        response = api.post(ENDPOINT, data=build_form(app, token))
        assert (response.status_code, response.text) == (200, "")
    assert check_tokens(api, app, tokens) == (True, True)


def test_an_app_cannot_revoke_the_token_of_another(api: httpx.Client, app: Application, librarian: User) -> None:
    tokens = obtain_tokens(api, librarian, app)
    for stranger in (create_confidential_app("reseller"), create_public_app("thief")):
        for kind in ("access_token", "refresh_token"):
            assert api.post(ENDPOINT, data=build_form(stranger, tokens[kind])).status_code == 200
    assert check_tokens(api, app, tokens) == (True, True)


def test_a_rotated_token_ends_its_grant_too(api: httpx.Client, shelf: Application, librarian: User) -> None:
    first = obtain_tokens(api, librarian, shelf)
    second = api.post("/oauth/refresh", data=build_refresh_request(shelf, first["refresh_token"])).json()
    api.post(ENDPOINT, data=build_form(shelf, first["refresh_token"]))
    assert check_tokens(api, shelf, second) == (False, False)


def test_a_client_that_does_not_authenticate_revokes_nothing(
    api: httpx.Client, bookshop: Application, librarian: User
) -> None:
    tokens = obtain_tokens(api, librarian, bookshop)
    form, basic = {"token": tokens["access_token"]}, build_basic_header("bookshop", SECRET)
    assert api.post(ENDPOINT, data={**form, "client_id": "bookshop", "client_secret": "wrong"}).status_code == 401
    assert check_tokens(api, bookshop, tokens) == (True, True)
    assert api.post(ENDPOINT, data=form, headers=basic).status_code == 200
    assert check_tokens(api, bookshop, tokens) == (False, False)


@pytest.mark.parametrize("form", [{}, {"token": ""}])
def test_a_token_is_required(api: httpx.Client, shelf: Application, form: dict[str, str]) -> None:
    assert parse_oauth_error(api.post(ENDPOINT, data={"client_id": "shelf", **form})) == INVALID_REQUEST
