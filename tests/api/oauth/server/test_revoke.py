"""An app can revoke its tokens (RFC 7009)."""

import base64
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from oauth2_provider.models import Application
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.support.forged_tokens import build_claims, forge_token
from tests.support.oauth_flows import (
    SECRET,
    build_bearer_header,
    build_refresh_request,
    create_confidential_app,
    create_librarian,
    create_public_app,
    obtain_tokens,
    parse_oauth_error,
)

ENDPOINT = "/oauth/revoke"


@pytest.fixture(params=[create_confidential_app, create_public_app])
def app(request: pytest.FixtureRequest, db: None) -> Application:
    app: Application = request.param()
    return app


@pytest.fixture
def user(db: None) -> User:
    return create_librarian()


def build_form(application: Application, token: str, /, **fields: str) -> dict[str, str]:
    secret = {} if application.client_type == "public" else {"client_secret": SECRET}
    return {"client_id": application.client_id, **secret, "token": token, **fields}


def check_tokens(api: httpx.Client, application: Application, tokens: dict[str, Any]) -> tuple[bool, bool]:
    """Tells whether the access token is accepted, and whether the refresh token is."""
    resource_response = api.get("/oauth/resource", headers=build_bearer_header(tokens["access_token"]))
    refresh_response = api.post("/oauth/refresh", data=build_refresh_request(application, tokens["refresh_token"]))
    return resource_response.status_code == 200, refresh_response.status_code == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense", ""])
def test_either_token_ends_both(
    api: httpx.Client,
    app: Application,
    user: User,
    kind: str,
    hint: str | None,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    tokens = obtain_tokens(api, user, app)
    hint_field = {} if hint is None else {"token_type_hint": hint}
    with django_capture_on_commit_callbacks(execute=True):
        response = api.post(ENDPOINT, data=build_form(app, tokens[kind], **hint_field))
    assert (response.status_code, response.text) == (200, "")
    assert response.headers["Cache-Control"] == "no-store"
    assert check_tokens(api, app, tokens) == (False, False)


def test_an_app_can_get_new_tokens_after_a_revocation(
    api: httpx.Client,
    app: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    tokens = obtain_tokens(api, user, app)
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=build_form(app, tokens["access_token"]))
    assert check_tokens(api, app, obtain_tokens(api, user, app)) == (True, True)


def test_a_revocation_ends_no_other_grant(
    api: httpx.Client,
    app: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    other, tokens = obtain_tokens(api, user, app), obtain_tokens(api, user, app)
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=build_form(app, tokens["refresh_token"]))
    assert check_tokens(api, app, other) == (True, True)


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "é", "x" * 100_000])
def test_the_revocation_of_an_unknown_token_succeeds(api: httpx.Client, app: Application, token: str) -> None:
    response = api.post(ENDPOINT, data=build_form(app, token))
    assert (response.status_code, response.text) == (200, "")


def test_a_token_can_be_revoked_twice(api: httpx.Client, app: Application, user: User) -> None:
    tokens = obtain_tokens(api, user, app)
    statuses = [
        api.post(ENDPOINT, data=build_form(app, tokens[kind])).status_code
        for kind in ("refresh_token", "refresh_token", "access_token")
    ]
    assert statuses == [200, 200, 200]


def test_a_forged_token_ends_nothing(
    api: httpx.Client,
    app: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    tokens = obtain_tokens(api, user, app)
    unsigned = tokens["access_token"].rpartition(".")[0] + "."
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(ENDPOINT, data=build_form(app, unsigned)).status_code == 200
        forged = forge_token(build_claims(user.pk, client_id=app.client_id))
        assert api.post(ENDPOINT, data=build_form(app, forged)).status_code == 200
    assert check_tokens(api, app, tokens) == (True, True)


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("make", [create_confidential_app, create_public_app])
def test_an_app_cannot_revoke_the_token_of_another(
    api: httpx.Client,
    app: Application,
    user: User,
    kind: str,
    make: Any,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    tokens = obtain_tokens(api, user, app)
    with django_capture_on_commit_callbacks(execute=True):
        response = api.post(ENDPOINT, data=build_form(make("stranger"), tokens[kind]))
    assert response.status_code == 200
    assert check_tokens(api, app, tokens) == (True, True)


def test_a_rotated_token_ends_its_grant_too(
    api: httpx.Client, user: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    shelf = create_public_app()
    first = obtain_tokens(api, user, shelf)
    second = api.post("/oauth/refresh", data=build_refresh_request(shelf, first["refresh_token"])).json()
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=build_form(shelf, first["refresh_token"]))
    assert check_tokens(api, shelf, second) == (False, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"client_secret": "wrong"},
        {"client_secret": ""},
        {"client_id": "nobody"},
        {"client_id": ""},
        {"client_id": "shelf", "client_secret": "guess"},
    ],
)
def test_a_client_that_does_not_authenticate_revokes_nothing(
    api: httpx.Client,
    user: User,
    changes: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    bookshop, _ = create_confidential_app(), create_public_app()
    tokens = obtain_tokens(api, user, bookshop)
    with django_capture_on_commit_callbacks(execute=True):
        response = api.post(ENDPOINT, data={**build_form(bookshop, tokens["access_token"]), **changes})
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
    assert check_tokens(api, bookshop, tokens) == (True, True)


def test_an_app_may_send_its_secret_in_the_header(
    api: httpx.Client, user: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    bookshop = create_confidential_app()
    tokens = obtain_tokens(api, user, bookshop)
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(ENDPOINT, data={"token": tokens["access_token"]}, headers=headers).status_code == 200
    assert check_tokens(api, bookshop, tokens) == (False, False)


def test_a_failed_basic_authentication_is_challenged_with_basic(api: httpx.Client, db: None) -> None:
    create_confidential_app()
    headers = {"Authorization": f"Basic {base64.b64encode(b'bookshop:wrong').decode()}"}
    response = api.post(ENDPOINT, data={"token": "nonsense"}, headers=headers)
    assert parse_oauth_error(response) == (401, "invalid_client")
    assert response.headers["WWW-Authenticate"].startswith("Basic ")


def test_credentials_in_header_and_body_are_refused(api: httpx.Client, db: None) -> None:
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    response = api.post(ENDPOINT, data=build_form(create_confidential_app(), "nonsense"), headers=headers)
    assert parse_oauth_error(response) == (400, "invalid_request")


@pytest.mark.parametrize("token", [None, ""])
def test_a_token_is_required(api: httpx.Client, app: Application, token: str | None) -> None:
    form = {name: value for name, value in {**build_form(app, ""), "token": token}.items() if value is not None}
    assert parse_oauth_error(api.post(ENDPOINT, data=form)) == (400, "invalid_request")
