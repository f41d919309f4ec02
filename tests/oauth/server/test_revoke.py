"""How an app gives a token back (RFC 7009)."""

import base64
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from oauth2_provider.models import Application
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.support.forged_tokens import claims_of, forged
from tests.support.oauth_flows import (
    SECRET,
    bearer,
    confidential_app,
    librarian,
    public_app,
    refreshing,
    refusal,
    tokens_for,
)

ENDPOINT = "/oauth/revoke"


@pytest.fixture(params=[confidential_app, public_app])
def registered(request: pytest.FixtureRequest, db: None) -> Application:
    made: Application = request.param()
    return made


@pytest.fixture
def user(db: None) -> User:
    return librarian()


def revoking(application: Application, token: str, /, **members: str) -> dict[str, str]:
    secret = {} if application.client_type == "public" else {"client_secret": SECRET}
    return {"client_id": application.client_id, **secret, "token": token, **members}


def alive(api: httpx.Client, application: Application, tokens: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the access token and the refresh token are good."""
    used = api.get("/oauth/resource", headers=bearer(tokens["access_token"]))
    refreshed = api.post("/oauth/refresh", data=refreshing(application, tokens["refresh_token"]))
    return used.status_code == 200, refreshed.status_code == 200


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("hint", [None, "access_token", "refresh_token", "nonsense", ""])
def test_either_token_ends_both(
    api: httpx.Client,
    registered: Application,
    user: User,
    kind: str,
    hint: str | None,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    given = tokens_for(api, user, registered)
    hinted = {} if hint is None else {"token_type_hint": hint}
    with django_capture_on_commit_callbacks(execute=True):
        answer = api.post(ENDPOINT, data=revoking(registered, given[kind], **hinted))
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["Cache-Control"] == "no-store"
    assert alive(api, registered, given) == (False, False)


def test_an_app_that_was_revoked_may_ask_again(
    api: httpx.Client,
    registered: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    given = tokens_for(api, user, registered)
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=revoking(registered, given["access_token"]))
    assert alive(api, registered, tokens_for(api, user, registered)) == (True, True)


def test_another_grant_lives_on(
    api: httpx.Client,
    registered: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    other, given = tokens_for(api, user, registered), tokens_for(api, user, registered)
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=revoking(registered, given["refresh_token"]))
    assert alive(api, registered, other) == (True, True)


@pytest.mark.parametrize("token", ["nonsense", "a.b.c", "é", "x" * 100_000])
def test_a_token_that_is_none_is_gone_already(api: httpx.Client, registered: Application, token: str) -> None:
    answer = api.post(ENDPOINT, data=revoking(registered, token))
    assert (answer.status_code, answer.text) == (200, "")


def test_a_token_twice_revoked_is_gone(api: httpx.Client, registered: Application, user: User) -> None:
    given = tokens_for(api, user, registered)
    statuses = [
        api.post(ENDPOINT, data=revoking(registered, given[kind])).status_code
        for kind in ("refresh_token", "refresh_token", "access_token")
    ]
    assert statuses == [200, 200, 200]


def test_a_forged_token_ends_nothing(
    api: httpx.Client,
    registered: Application,
    user: User,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    given = tokens_for(api, user, registered)
    unsigned = given["access_token"].rpartition(".")[0] + "."
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(ENDPOINT, data=revoking(registered, unsigned)).status_code == 200
        strange = forged(claims_of(user.pk, client_id=registered.client_id))
        assert api.post(ENDPOINT, data=revoking(registered, strange)).status_code == 200
    assert alive(api, registered, given) == (True, True)


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
@pytest.mark.parametrize("make", [confidential_app, public_app])
def test_a_token_of_another_app_is_left_alone(
    api: httpx.Client,
    registered: Application,
    user: User,
    kind: str,
    make: Any,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    given = tokens_for(api, user, registered)
    with django_capture_on_commit_callbacks(execute=True):
        answer = api.post(ENDPOINT, data=revoking(make("stranger"), given[kind]))
    assert answer.status_code == 200
    assert alive(api, registered, given) == (True, True)


def test_a_rotated_token_ends_its_grant_too(
    api: httpx.Client, user: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    shelf = public_app()
    first = tokens_for(api, user, shelf)
    second = api.post("/oauth/refresh", data=refreshing(shelf, first["refresh_token"])).json()
    with django_capture_on_commit_callbacks(execute=True):
        api.post(ENDPOINT, data=revoking(shelf, first["refresh_token"]))
    assert alive(api, shelf, second) == (False, False)


@pytest.mark.parametrize(
    "changed",
    [
        {"client_secret": "wrong"},
        {"client_secret": ""},
        {"client_id": "nobody"},
        {"client_id": ""},
        {"client_id": "shelf", "client_secret": "guess"},
    ],
)
def test_who_is_not_the_app_revokes_nothing(
    api: httpx.Client,
    user: User,
    changed: dict[str, str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    bookshop, _ = confidential_app(), public_app()
    given = tokens_for(api, user, bookshop)
    with django_capture_on_commit_callbacks(execute=True):
        answer = api.post(ENDPOINT, data={**revoking(bookshop, given["access_token"]), **changed})
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
    assert alive(api, bookshop, given) == (True, True)


def test_an_app_may_show_its_secret_in_the_header(
    api: httpx.Client, user: User, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    bookshop = confidential_app()
    given = tokens_for(api, user, bookshop)
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    with django_capture_on_commit_callbacks(execute=True):
        assert api.post(ENDPOINT, data={"token": given["access_token"]}, headers=headers).status_code == 200
    assert alive(api, bookshop, given) == (False, False)


def test_who_fails_with_basic_is_asked_for_basic(api: httpx.Client, db: None) -> None:
    confidential_app()
    headers = {"Authorization": f"Basic {base64.b64encode(b'bookshop:wrong').decode()}"}
    answer = api.post(ENDPOINT, data={"token": "nonsense"}, headers=headers)
    assert refusal(answer) == (401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


def test_header_and_body_at_once_are_refused(api: httpx.Client, db: None) -> None:
    headers = {"Authorization": f"Basic {base64.b64encode(f'bookshop:{SECRET}'.encode()).decode()}"}
    answer = api.post(ENDPOINT, data=revoking(confidential_app(), "nonsense"), headers=headers)
    assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize("token", [None, ""])
def test_a_token_is_required(api: httpx.Client, registered: Application, token: str | None) -> None:
    form = {name: value for name, value in {**revoking(registered, ""), "token": token}.items() if value is not None}
    assert refusal(api.post(ENDPOINT, data=form)) == (400, "invalid_request")
