"""How long a grant lasts, and what a refresh token is answered (specification, Section 5; RFC 6749, 6)."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, RefreshToken
from pytest_django import DjangoCaptureOnCommitCallbacks

from oauth.models import Authorization
from tests.support.forged_tokens import spoken
from tests.support.oauth_flows import (
    bearer,
    code_for,
    confidential_app,
    deactivated,
    deactivated_silently,
    librarian,
    public_app,
    reader,
    redemption,
    refreshing,
    refusal,
    tokens_for,
)


@pytest.fixture(params=["/oauth/refresh", "/oauth/token"])
def endpoint(request: pytest.FixtureRequest) -> str:
    address: str = request.param
    return address


@pytest.fixture(params=[confidential_app, public_app])
def registered(request: pytest.FixtureRequest, db: None) -> Application:
    made: Application = request.param()
    return made


def refreshed(api: httpx.Client, application: Application, token: str, **changed: str | None) -> httpx.Response:
    return api.post("/oauth/refresh", data=refreshing(application, token, **changed))


def good(api: httpx.Client, application: Application, token: str, **changed: str | None) -> dict[str, Any]:
    answer = refreshed(api, application, token, **changed)
    assert answer.status_code == 200, answer.text
    members: dict[str, Any] = answer.json()
    return members


def scope(api: httpx.Client, tokens: dict[str, Any]) -> str:
    """What an access token is good for."""
    answer = api.get("/oauth/resource", headers=bearer(tokens["access_token"]))
    assert answer.status_code == 200, answer.text
    granted: str = answer.json()["scope"]
    return granted


def test_a_confidential_app_gets_three_members_and_keeps_its_token(api: httpx.Client, endpoint: str) -> None:
    application = confidential_app()
    first = tokens_for(api, librarian(), application)
    for _ in range(2):
        answer = api.post(endpoint, data=refreshing(application, first["refresh_token"]))
        body = answer.json()
        assert answer.status_code == 200
        assert body == {"access_token": body["access_token"], "token_type": "Bearer", "expires_in": 3600}
        assert body["access_token"] != first["access_token"]
        assert scope(api, body) == "read write"


def test_a_public_app_gets_a_new_refresh_token_too(api: httpx.Client, endpoint: str) -> None:
    application = public_app()
    first = tokens_for(api, librarian(), application)
    answer = api.post(endpoint, data=refreshing(application, first["refresh_token"]))
    body = answer.json()
    assert answer.status_code == 200
    assert body == {
        "access_token": body["access_token"],
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": body["refresh_token"],
    }
    assert body["refresh_token"] != first["refresh_token"]
    assert scope(api, body) == "read write"
    assert api.post(endpoint, data=refreshing(application, body["refresh_token"])).status_code == 200


def test_no_app_chooses_its_refresh_token(api: httpx.Client) -> None:
    application = public_app()
    form = redemption(application, code_for(api, librarian(), application), refresh_token="chosen")
    answered = api.post("/oauth/token", data=form).json()
    assert answered["refresh_token"] != "chosen"
    assert refusal(refreshed(api, application, "chosen")) == (400, "invalid_grant")


def test_refreshed_tokens_are_of_the_same_grant(api: httpx.Client, registered: Application) -> None:
    first = tokens_for(api, reader(), registered)
    second = good(api, registered, first["refresh_token"])
    (_, before), (_, after) = spoken(first["access_token"]), spoken(second["access_token"])
    assert after == {**before, **{name: after[name] for name in ("jti", "iat", "exp")}}
    assert after["jti"] != before["jti"]
    assert after["exp"] == after["iat"] + 3600


def test_an_earlier_access_token_lasts_as_long_as_it_said(api: httpx.Client, registered: Application) -> None:
    first = tokens_for(api, reader(), registered)
    good(api, registered, first["refresh_token"])
    assert scope(api, first) == "read"


@pytest.mark.parametrize("grant_type", ["authorization_code", "password", "client_credentials", "Refresh_Token"])
def test_other_grants_are_not_supported_here(api: httpx.Client, registered: Application, grant_type: str) -> None:
    token = tokens_for(api, reader(), registered)["refresh_token"]
    answer = refreshed(api, registered, token, grant_type=grant_type, code="x")
    assert refusal(answer) == (400, "unsupported_grant_type")


@pytest.mark.parametrize("changed", [{"grant_type": None}, {"refresh_token": None}])
def test_what_is_missing_is_told(
    api: httpx.Client, endpoint: str, registered: Application, changed: dict[str, str | None]
) -> None:
    answer = api.post(endpoint, data=refreshing(registered, "nonsense", **changed))
    assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize("token", ["nonsense", "é", "x" * 100_000])
def test_an_unknown_token_is_refused(api: httpx.Client, endpoint: str, registered: Application, token: str) -> None:
    assert refusal(api.post(endpoint, data=refreshing(registered, token))) == (400, "invalid_grant")


def test_an_access_token_refreshes_nothing(api: httpx.Client, endpoint: str, registered: Application) -> None:
    token = tokens_for(api, reader(), registered)["access_token"]
    assert refusal(api.post(endpoint, data=refreshing(registered, token))) == (400, "invalid_grant")


@pytest.mark.parametrize("secret", ["wrong", "", None])
def test_a_confidential_app_must_show_its_secret(api: httpx.Client, endpoint: str, secret: str | None) -> None:
    application = confidential_app()
    token = tokens_for(api, reader(), application)["refresh_token"]
    answer = api.post(endpoint, data=refreshing(application, token, client_secret=secret))
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})


def test_a_public_app_has_no_secret(api: httpx.Client, endpoint: str) -> None:
    application = public_app()
    token = tokens_for(api, reader(), application)["refresh_token"]
    answer = api.post(endpoint, data=refreshing(application, token, client_secret="guess"))
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})


def test_a_token_of_another_app_is_refused_and_stays_good(api: httpx.Client, registered: Application) -> None:
    token = tokens_for(api, reader(), registered)["refresh_token"]
    for thief in (confidential_app("reseller"), public_app("thief")):
        assert refusal(refreshed(api, thief, token)) == (400, "invalid_grant")
    good(api, registered, token)


def test_no_more_is_granted_than_before(api: httpx.Client, endpoint: str, registered: Application) -> None:
    token = tokens_for(api, librarian(), registered, scope="read")["refresh_token"]
    for wider in ("read write", "write", "nonsense", "read nonsense"):
        answer = api.post(endpoint, data=refreshing(registered, token, scope=wider))
        assert refusal(answer) == (400, "invalid_scope")
    assert scope(api, good(api, registered, token)) == "read"


def test_less_may_be_asked_for_and_all_of_it_again(api: httpx.Client, registered: Application) -> None:
    first = tokens_for(api, librarian(), registered)
    narrow = good(api, registered, first["refresh_token"], scope="read")
    whole = good(api, registered, narrow.get("refresh_token", first["refresh_token"]))
    again = good(api, registered, whole.get("refresh_token", first["refresh_token"]), scope="write read")
    assert [scope(api, one) for one in (narrow, whole, again)] == ["read", "read write", "read write"]


def test_a_lost_role_narrows_and_a_regained_one_widens_again(
    api: httpx.Client, registered: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user, group = librarian(), Group.objects.get(name="Librarians")
    first = tokens_for(api, user, registered)
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.remove(group)
    narrow = good(api, registered, first["refresh_token"])
    assert scope(api, narrow) == "read"
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.add(group)
    whole = good(api, registered, narrow.get("refresh_token", first["refresh_token"]))
    assert scope(api, whole) == "read write"


def test_where_nothing_is_left_nothing_is_granted(
    api: httpx.Client, registered: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user, group = librarian(), Group.objects.get(name="Librarians")
    token = tokens_for(api, user, registered, scope="write")["refresh_token"]
    user.groups.remove(group)
    assert refusal(refreshed(api, registered, token)) == (400, "invalid_scope")
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.add(group)
    assert scope(api, good(api, registered, token)) == "write"


def test_what_the_app_may_no_longer_is_not_granted(api: httpx.Client, registered: Application) -> None:
    token = tokens_for(api, librarian(), registered)["refresh_token"]
    registered.allowance.scopes = "read"
    registered.allowance.save()
    assert scope(api, good(api, registered, token)) == "read"


def test_a_reused_token_ends_its_family(
    api: httpx.Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """RFC 9700, 4.14.2."""
    application = public_app()
    first = tokens_for(api, reader(), application)
    second = good(api, application, first["refresh_token"])
    third = good(api, application, second["refresh_token"])
    with django_capture_on_commit_callbacks(execute=True):
        assert refusal(refreshed(api, application, first["refresh_token"])) == (400, "invalid_grant")
    assert refusal(refreshed(api, application, third["refresh_token"])) == (400, "invalid_grant")
    for tokens in (first, second, third):
        answer = api.get("/oauth/resource", headers=bearer(tokens["access_token"]))
        assert refusal(answer) == (401, "invalid_token")


def test_a_reused_token_ends_no_other_grant(
    api: httpx.Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    application, user = public_app(), reader()
    other = tokens_for(api, user, application)
    first = tokens_for(api, user, application)
    good(api, application, first["refresh_token"])
    with django_capture_on_commit_callbacks(execute=True):
        refreshed(api, application, first["refresh_token"])
    assert scope(api, other) == "read"
    good(api, application, other["refresh_token"])


def test_a_token_reused_by_another_app_ends_nothing(api: httpx.Client) -> None:
    application = public_app()
    first = tokens_for(api, reader(), application)
    second = good(api, application, first["refresh_token"])
    assert refusal(refreshed(api, public_app("thief"), first["refresh_token"])) == (400, "invalid_grant")
    good(api, application, second["refresh_token"])


@pytest.mark.parametrize(
    ("idle", "expected"),
    [(timedelta(days=30, minutes=-1), (200, None)), (timedelta(days=30), (400, "invalid_grant"))],
)
def test_a_grant_ends_thirty_days_after_its_last_access_token(
    api: httpx.Client, registered: Application, idle: timedelta, expected: tuple[int, str | None]
) -> None:
    token = tokens_for(api, reader(), registered)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - idle)
    assert refusal(refreshed(api, registered, token)) == expected


def test_who_refreshes_is_not_idle(api: httpx.Client, registered: Application) -> None:
    first = tokens_for(api, reader(), registered)
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=29))
    second = good(api, registered, first["refresh_token"])
    AccessToken.objects.filter(expires__gt=timezone.now()).update(expires=timezone.now() - timedelta(days=29))
    good(api, registered, second.get("refresh_token", first["refresh_token"]))


@pytest.mark.parametrize(
    ("age", "expected"),
    [(timedelta(days=90, minutes=-1), (200, None)), (timedelta(days=90), (400, "invalid_grant"))],
)
def test_a_grant_ends_after_ninety_days(
    api: httpx.Client, registered: Application, age: timedelta, expected: tuple[int, str | None]
) -> None:
    token = tokens_for(api, reader(), registered)["refresh_token"]
    Authorization.objects.update(created_at=timezone.now() - age)
    assert refusal(refreshed(api, registered, token)) == expected


def given_a_password(user: User) -> None:
    user.set_password("a new one, long enough")
    user.save()


@pytest.mark.parametrize("change", [deactivated, deactivated_silently, given_a_password, User.delete])
def test_a_grant_ends_with_its_person(api: httpx.Client, registered: Application, change: Any) -> None:
    user = reader()
    token = tokens_for(api, user, registered)["refresh_token"]
    change(user)
    assert refusal(refreshed(api, registered, token)) == (400, "invalid_grant")


def test_a_grant_from_before_does_not_come_back_with_its_person(api: httpx.Client, registered: Application) -> None:
    user = reader()
    token = tokens_for(api, user, registered)["refresh_token"]
    deactivated(user)
    user.is_active = True
    user.save()
    assert refusal(refreshed(api, registered, token)) == (400, "invalid_grant")


def test_a_grant_outlives_what_is_no_new_password(api: httpx.Client, registered: Application) -> None:
    user = reader()
    token = tokens_for(api, user, registered)["refresh_token"]
    user.first_name = "Jane"
    user.save()
    good(api, registered, token)


def test_refresh_tokens_are_not_stored(api: httpx.Client, registered: Application) -> None:
    given = tokens_for(api, reader(), registered)
    stored = RefreshToken.objects.values_list("token", flat=True)
    assert given["refresh_token"] not in stored
    assert given["access_token"] not in AccessToken.objects.values_list("token", flat=True)
