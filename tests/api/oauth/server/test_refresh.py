"""How refresh tokens work and how long a grant lasts (specification, Section 5; RFC 6749, 6)."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, RefreshToken
from pytest_django import DjangoCaptureOnCommitCallbacks

from oauth.models import Authorization
from tests.support.forged_tokens import decode_token
from tests.support.oauth_flows import (
    build_bearer_header,
    build_code_request,
    build_refresh_request,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    deactivate,
    deactivate_without_signal,
    obtain_code,
    obtain_tokens,
    parse_oauth_error,
)


@pytest.fixture(params=["/oauth/refresh", "/oauth/token"])
def endpoint(request: pytest.FixtureRequest) -> str:
    address: str = request.param
    return address


@pytest.fixture(params=[create_confidential_app, create_public_app])
def app(request: pytest.FixtureRequest, db: None) -> Application:
    app: Application = request.param()
    return app


def send_refresh(api: httpx.Client, application: Application, token: str, **changes: str | None) -> httpx.Response:
    return api.post("/oauth/refresh", data=build_refresh_request(application, token, **changes))


def refresh(api: httpx.Client, application: Application, token: str, **changes: str | None) -> dict[str, Any]:
    response = send_refresh(api, application, token, **changes)
    assert response.status_code == 200, response.text
    fields: dict[str, Any] = response.json()
    return fields


def read_scope(api: httpx.Client, tokens: dict[str, Any]) -> str:
    """Returns the scopes that an access token has."""
    response = api.get("/oauth/resource", headers=build_bearer_header(tokens["access_token"]))
    assert response.status_code == 200, response.text
    scope_text: str = response.json()["scope"]
    return scope_text


def test_a_confidential_app_gets_three_fields_and_keeps_its_token(api: httpx.Client, endpoint: str) -> None:
    application = create_confidential_app()
    first = obtain_tokens(api, create_librarian(), application)
    for _ in range(2):
        response = api.post(endpoint, data=build_refresh_request(application, first["refresh_token"]))
        body = response.json()
        assert response.status_code == 200
        assert body == {"access_token": body["access_token"], "token_type": "Bearer", "expires_in": 3600}
        assert body["access_token"] != first["access_token"]
        assert read_scope(api, body) == "read write"


def test_a_public_app_gets_a_new_refresh_token_too(api: httpx.Client, endpoint: str) -> None:
    application = create_public_app()
    first = obtain_tokens(api, create_librarian(), application)
    response = api.post(endpoint, data=build_refresh_request(application, first["refresh_token"]))
    body = response.json()
    assert response.status_code == 200
    assert body == {
        "access_token": body["access_token"],
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": body["refresh_token"],
    }
    assert body["refresh_token"] != first["refresh_token"]
    assert read_scope(api, body) == "read write"
    assert api.post(endpoint, data=build_refresh_request(application, body["refresh_token"])).status_code == 200


def test_no_app_chooses_its_refresh_token(api: httpx.Client) -> None:
    application = create_public_app()
    form = build_code_request(application, obtain_code(api, create_librarian(), application), refresh_token="chosen")
    tokens = api.post("/oauth/token", data=form).json()
    assert tokens["refresh_token"] != "chosen"
    assert parse_oauth_error(send_refresh(api, application, "chosen")) == (400, "invalid_grant")


def test_refreshed_tokens_are_of_the_same_grant(api: httpx.Client, app: Application) -> None:
    first = obtain_tokens(api, create_reader(), app)
    second = refresh(api, app, first["refresh_token"])
    (_, before), (_, after) = decode_token(first["access_token"]), decode_token(second["access_token"])
    assert after == {**before, **{name: after[name] for name in ("jti", "iat", "exp")}}
    assert after["jti"] != before["jti"]
    assert after["exp"] == after["iat"] + 3600


def test_an_earlier_access_token_stays_valid_until_it_expires(api: httpx.Client, app: Application) -> None:
    first = obtain_tokens(api, create_reader(), app)
    refresh(api, app, first["refresh_token"])
    assert read_scope(api, first) == "read"


@pytest.mark.parametrize("grant_type", ["authorization_code", "password", "client_credentials", "Refresh_Token"])
def test_other_grants_are_not_supported_here(api: httpx.Client, app: Application, grant_type: str) -> None:
    token = obtain_tokens(api, create_reader(), app)["refresh_token"]
    response = send_refresh(api, app, token, grant_type=grant_type, code="x")
    assert parse_oauth_error(response) == (400, "unsupported_grant_type")


@pytest.mark.parametrize("changes", [{"grant_type": None}, {"refresh_token": None}])
def test_a_missing_parameter_is_refused(
    api: httpx.Client, endpoint: str, app: Application, changes: dict[str, str | None]
) -> None:
    response = api.post(endpoint, data=build_refresh_request(app, "nonsense", **changes))
    assert parse_oauth_error(response) == (400, "invalid_request")


@pytest.mark.parametrize("token", ["nonsense", "é", "x" * 100_000])
def test_an_unknown_token_is_refused(api: httpx.Client, endpoint: str, app: Application, token: str) -> None:
    assert parse_oauth_error(api.post(endpoint, data=build_refresh_request(app, token))) == (
        400,
        "invalid_grant",
    )


def test_an_access_token_refreshes_nothing(api: httpx.Client, endpoint: str, app: Application) -> None:
    token = obtain_tokens(api, create_reader(), app)["access_token"]
    assert parse_oauth_error(api.post(endpoint, data=build_refresh_request(app, token))) == (
        400,
        "invalid_grant",
    )


@pytest.mark.parametrize("secret", ["wrong", "", None])
def test_a_confidential_app_must_send_its_secret(api: httpx.Client, endpoint: str, secret: str | None) -> None:
    application = create_confidential_app()
    token = obtain_tokens(api, create_reader(), application)["refresh_token"]
    response = api.post(endpoint, data=build_refresh_request(application, token, client_secret=secret))
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})


def test_a_public_app_has_no_secret(api: httpx.Client, endpoint: str) -> None:
    application = create_public_app()
    token = obtain_tokens(api, create_reader(), application)["refresh_token"]
    response = api.post(endpoint, data=build_refresh_request(application, token, client_secret="guess"))
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})


def test_a_token_of_another_app_is_refused_and_stays_valid(api: httpx.Client, app: Application) -> None:
    token = obtain_tokens(api, create_reader(), app)["refresh_token"]
    for thief in (create_confidential_app("reseller"), create_public_app("thief")):
        assert parse_oauth_error(send_refresh(api, thief, token)) == (400, "invalid_grant")
    refresh(api, app, token)


def test_no_more_is_granted_than_before(api: httpx.Client, endpoint: str, app: Application) -> None:
    token = obtain_tokens(api, create_librarian(), app, scope="read")["refresh_token"]
    for wider in ("read write", "write", "nonsense", "read nonsense"):
        response = api.post(endpoint, data=build_refresh_request(app, token, scope=wider))
        assert parse_oauth_error(response) == (400, "invalid_scope")
    assert read_scope(api, refresh(api, app, token)) == "read"


def test_an_app_may_request_fewer_scopes_and_later_all_again(api: httpx.Client, app: Application) -> None:
    first = obtain_tokens(api, create_librarian(), app)
    narrow = refresh(api, app, first["refresh_token"], scope="read")
    wide = refresh(api, app, narrow.get("refresh_token", first["refresh_token"]))
    repeated = refresh(api, app, wide.get("refresh_token", first["refresh_token"]), scope="write read")
    assert [read_scope(api, tokens) for tokens in (narrow, wide, repeated)] == ["read", "read write", "read write"]


def test_a_lost_role_narrows_and_a_regained_one_widens_again(
    api: httpx.Client, app: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user, group = create_librarian(), Group.objects.get(name="Librarians")
    first = obtain_tokens(api, user, app)
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.remove(group)
    narrow = refresh(api, app, first["refresh_token"])
    assert read_scope(api, narrow) == "read"
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.add(group)
    wide = refresh(api, app, narrow.get("refresh_token", first["refresh_token"]))
    assert read_scope(api, wide) == "read write"


def test_where_nothing_is_left_nothing_is_granted(
    api: httpx.Client, app: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user, group = create_librarian(), Group.objects.get(name="Librarians")
    token = obtain_tokens(api, user, app, scope="write")["refresh_token"]
    user.groups.remove(group)
    assert parse_oauth_error(send_refresh(api, app, token)) == (400, "invalid_scope")
    with django_capture_on_commit_callbacks(execute=True):
        user.groups.add(group)
    assert read_scope(api, refresh(api, app, token)) == "write"


def test_what_the_app_may_no_longer_is_not_granted(api: httpx.Client, app: Application) -> None:
    token = obtain_tokens(api, create_librarian(), app)["refresh_token"]
    app.allowance.scopes = "read"
    app.allowance.save()
    assert read_scope(api, refresh(api, app, token)) == "read"


def test_a_reused_token_ends_its_family(
    api: httpx.Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """RFC 9700, 4.14.2."""
    application = create_public_app()
    first = obtain_tokens(api, create_reader(), application)
    second = refresh(api, application, first["refresh_token"])
    third = refresh(api, application, second["refresh_token"])
    with django_capture_on_commit_callbacks(execute=True):
        assert parse_oauth_error(send_refresh(api, application, first["refresh_token"])) == (400, "invalid_grant")
    assert parse_oauth_error(send_refresh(api, application, third["refresh_token"])) == (400, "invalid_grant")
    for tokens in (first, second, third):
        response = api.get("/oauth/resource", headers=build_bearer_header(tokens["access_token"]))
        assert parse_oauth_error(response) == (401, "invalid_token")


def test_a_reused_token_ends_no_other_grant(
    api: httpx.Client, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    application, user = create_public_app(), create_reader()
    other = obtain_tokens(api, user, application)
    first = obtain_tokens(api, user, application)
    refresh(api, application, first["refresh_token"])
    with django_capture_on_commit_callbacks(execute=True):
        send_refresh(api, application, first["refresh_token"])
    assert read_scope(api, other) == "read"
    refresh(api, application, other["refresh_token"])


def test_a_token_reused_by_another_app_ends_nothing(api: httpx.Client) -> None:
    application = create_public_app()
    first = obtain_tokens(api, create_reader(), application)
    second = refresh(api, application, first["refresh_token"])
    assert parse_oauth_error(send_refresh(api, create_public_app("thief"), first["refresh_token"])) == (
        400,
        "invalid_grant",
    )
    refresh(api, application, second["refresh_token"])


@pytest.mark.parametrize(
    ("idle", "expected"),
    [(timedelta(days=30, minutes=-1), (200, None)), (timedelta(days=30), (400, "invalid_grant"))],
)
def test_a_grant_ends_thirty_days_after_its_last_access_token(
    api: httpx.Client, app: Application, idle: timedelta, expected: tuple[int, str | None]
) -> None:
    token = obtain_tokens(api, create_reader(), app)["refresh_token"]
    AccessToken.objects.update(expires=timezone.now() - idle)
    assert parse_oauth_error(send_refresh(api, app, token)) == expected


def test_a_refresh_keeps_a_grant_from_ending(api: httpx.Client, app: Application) -> None:
    first = obtain_tokens(api, create_reader(), app)
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=29))
    second = refresh(api, app, first["refresh_token"])
    AccessToken.objects.filter(expires__gt=timezone.now()).update(expires=timezone.now() - timedelta(days=29))
    refresh(api, app, second.get("refresh_token", first["refresh_token"]))


@pytest.mark.parametrize(
    ("age", "expected"),
    [(timedelta(days=90, minutes=-1), (200, None)), (timedelta(days=90), (400, "invalid_grant"))],
)
def test_a_grant_ends_after_ninety_days(
    api: httpx.Client, app: Application, age: timedelta, expected: tuple[int, str | None]
) -> None:
    token = obtain_tokens(api, create_reader(), app)["refresh_token"]
    Authorization.objects.update(created_at=timezone.now() - age)
    assert parse_oauth_error(send_refresh(api, app, token)) == expected


def set_password(user: User) -> None:
    user.set_password("a new one, long enough")
    user.save()


@pytest.mark.parametrize("change", [deactivate, deactivate_without_signal, set_password, User.delete])
def test_a_grant_ends_with_its_user(api: httpx.Client, app: Application, change: Any) -> None:
    user = create_reader()
    token = obtain_tokens(api, user, app)["refresh_token"]
    change(user)
    assert parse_oauth_error(send_refresh(api, app, token)) == (400, "invalid_grant")


def test_an_ended_grant_does_not_come_back_with_its_user(api: httpx.Client, app: Application) -> None:
    user = create_reader()
    token = obtain_tokens(api, user, app)["refresh_token"]
    deactivate(user)
    user.is_active = True
    user.save()
    assert parse_oauth_error(send_refresh(api, app, token)) == (400, "invalid_grant")


def test_a_grant_outlives_other_changes_of_its_user(api: httpx.Client, app: Application) -> None:
    user = create_reader()
    token = obtain_tokens(api, user, app)["refresh_token"]
    user.first_name = "Jane"
    user.save()
    refresh(api, app, token)


def test_refresh_tokens_are_not_stored(api: httpx.Client, app: Application) -> None:
    tokens = obtain_tokens(api, create_reader(), app)
    stored = RefreshToken.objects.values_list("token", flat=True)
    assert tokens["refresh_token"] not in stored
    assert tokens["access_token"] not in AccessToken.objects.values_list("token", flat=True)
