"""An app can revoke its tokens (RFC 7009)."""

from typing import Any

import httpx
from django.contrib.auth.models import User
from oauth2_provider.models import Application

from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    INVALID_REQUEST,
    SECRET,
    build_basic_header,
    build_refresh_request,
    create_confidential_app,
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


def test_either_token_ends_both_whatever_is_said_of_it(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    for app, kind, hint in (
        (bookshop, "access_token", {}),
        (bookshop, "refresh_token", {"token_type_hint": "nonsense"}),
        (shelf, "access_token", {"token_type_hint": "refresh_token"}),
        (shelf, "refresh_token", {"token_type_hint": "access_token"}),
    ):
        tokens = obtain_tokens(api, librarian, app)
        # A token can be revoked twice.
        for _ in range(2):
            response = api.post(ENDPOINT, data=build_form(app, tokens[kind], **hint))
            assert (response.status_code, response.text) == (200, ""), (kind, hint)
            assert response.headers["Cache-Control"] == "no-store"
        assert check_tokens(api, app, tokens) == (False, False), (kind, hint)


def test_a_revocation_ends_no_other_grant(api: httpx.Client, shelf: Application, librarian: User) -> None:
    earlier, tokens = obtain_tokens(api, librarian, shelf), obtain_tokens(api, librarian, shelf)
    api.post(ENDPOINT, data=build_form(shelf, tokens["refresh_token"]))
    assert check_tokens(api, shelf, earlier) == (True, True)


def test_unknown_forged_and_foreign_tokens_end_nothing(
    api: httpx.Client, bookshop: Application, shelf: Application, librarian: User
) -> None:
    tokens = obtain_tokens(api, librarian, bookshop)
    unsigned = tokens["access_token"].rpartition(".")[0] + "."
    forged = forge_token(build_claims(librarian.pk, client_id=bookshop.client_id))
    texts = [(bookshop, token) for token in ("nonsense", "é", "x" * 100_000, unsigned, forged)]
    reseller = create_confidential_app("reseller")
    for app, token in (*texts, (reseller, tokens["access_token"]), (shelf, tokens["refresh_token"])):
        response = api.post(ENDPOINT, data=build_form(app, token))
        assert (response.status_code, response.text) == (200, "")
    assert check_tokens(api, bookshop, tokens) == (True, True)


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


def test_a_token_is_required(api: httpx.Client, shelf: Application) -> None:
    for form in ({}, {"token": ""}):
        assert parse_oauth_error(api.post(ENDPOINT, data={"client_id": "shelf", **form})) == INVALID_REQUEST
