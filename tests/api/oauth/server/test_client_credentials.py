"""Apps that act for nobody get tokens by their secret (RFC 6749, 4.4), where OAUTH_CLIENT_CREDENTIALS allows it."""

from datetime import timedelta
from io import StringIO
from typing import Any

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, RefreshToken
from pytest_django import Settings

from oauth.models import CONSENT_LIFETIME, Authorization
from oauth.server import registration
from oauth.tokens import revocations
from tests.support.books import build_book
from tests.support.forged_tokens import build_claims, decode_token, forge_token
from tests.support.oauth_flows import (
    INVALID_CLIENT,
    INVALID_SCOPE,
    SECRET,
    build_basic_header,
    build_bearer_header,
    create_confidential_app,
    create_reader,
    deactivate,
    parse_oauth_error,
)

GRANT = {"grant_type": "client_credentials"}
ID = "night-import"
AUTHENTICATION = build_basic_header(ID, SECRET)


@pytest.fixture(autouse=True)
def allowed(settings: Settings) -> None:
    settings.OAUTH_CLIENT_CREDENTIALS = True


@pytest.fixture
def program(db: None) -> Application:
    """It acts for itself, and may read and write."""
    app = create_confidential_app(ID)
    app.authorization_grant_type, app.redirect_uris = Application.GRANT_CLIENT_CREDENTIALS, ""
    app.save()
    return app


def request_token(api: httpx.Client, headers: dict[str, str] = AUTHENTICATION, **form: str) -> httpx.Response:
    return api.post("/oauth/token", data={**GRANT, **form}, headers=headers)


def obtain_header(api: httpx.Client, scope: str = "read write") -> dict[str, str]:
    return build_bearer_header(request_token(api, scope=scope).json()["access_token"])


def test_the_token_is_of_the_app_and_of_nobody_else(api: httpx.Client, program: Application) -> None:
    response = request_token(api, scope="read write")
    body = response.json()
    _, claims = decode_token(body["access_token"])
    description = api.post("/oauth/introspect", data={"token": body["access_token"]}, headers=AUTHENTICATION).json()
    resource = api.get("/oauth/resource", headers=build_bearer_header(body["access_token"])).json()
    assert (response.status_code, response.headers["Cache-Control"]) == (200, "no-store")
    assert body.keys() == {"access_token", "token_type", "expires_in", "scope"}
    assert (claims["sub"], claims["client_id"], claims["scope"]) == (ID, ID, "read write")
    assert (description["active"], description["sub"]) == (True, ID)
    assert (resource["user_id"], resource["scope"]) == (None, "read write")
    assert (RefreshToken.objects.count(), AccessToken.objects.get().user) == (0, None)


def test_the_history_names_the_app(api: httpx.Client, program: Application) -> None:
    header = obtain_header(api)
    address = api.post("/api/v2/books", json=build_book(), headers=header).headers["Location"]
    [entry] = api.get(f"{address}/history", headers=header).json()["results"]
    assert entry["actor"] == {"user": None, "app": program.name, "api_key": None, "source": None}


def test_the_setting_allows_the_grant(api: httpx.Client, settings: Settings) -> None:
    output = StringIO()
    call_command("create_oauth_app", "--name=Night import", "--own-access", "--scopes=read", stdout=output)
    client_id, secret = (line.partition(": ")[2] for line in output.getvalue().splitlines())
    authentication = build_basic_header(client_id, secret)
    tokens = request_token(api, authentication).json()
    assert tokens["scope"] == "read"
    metadata = api.get("/.well-known/oauth-authorization-server").json()
    assert metadata["grant_types_supported"] == ["authorization_code", "refresh_token", "client_credentials"]

    settings.OAUTH_CLIENT_CREDENTIALS = False

    assert parse_oauth_error(request_token(api, authentication)) == (400, "unsupported_grant_type")
    # What it got before ends with it.
    assert api.get("/api/v2/books", headers=build_bearer_header(tokens["access_token"])).status_code == 401
    with pytest.raises(CommandError, match="OAUTH_CLIENT_CREDENTIALS"):
        call_command("create_oauth_app", "--name=Night", "--own-access")


def test_an_app_that_people_let_in_gets_no_token_of_its_own(api: httpx.Client, bookshop: Application) -> None:
    """Its scopes are what people may give it, not what it has."""
    assert parse_oauth_error(request_token(api, build_basic_header("bookshop", SECRET))) == (400, "unauthorized_client")


def test_a_public_app_gets_no_token_of_its_own(api: httpx.Client, shelf: Application) -> None:
    Application.objects.update(authorization_grant_type=Application.GRANT_CLIENT_CREDENTIALS)
    assert parse_oauth_error(request_token(api, {}, client_id="shelf")) == INVALID_CLIENT
    assert parse_oauth_error(request_token(api, {}, client_id="shelf", client_secret=SECRET)) == INVALID_CLIENT


def test_nobody_can_be_asked_to_let_it_in(api: httpx.Client, program: Application) -> None:
    form = {"client_id": ID, "response_type": "code", "redirect_uri": "https://app.example/callback"}
    assert api.get("/oauth/authorize", params=form).status_code == 400
    code = {"grant_type": "authorization_code", "code": "c", "redirect_uri": form["redirect_uri"]}
    refresh = {"grant_type": "refresh_token", "refresh_token": "r"}
    assert [request_token(api, headers=AUTHENTICATION, **other).status_code for other in (code, refresh)] == [400, 400]


def test_scopes_beyond_the_allowance_are_left_out(api: httpx.Client, program: Application) -> None:
    program.allowance.scopes = "read"
    program.allowance.save()
    assert request_token(api, scope="read write webhooks").json()["scope"] == "read"
    assert parse_oauth_error(request_token(api, scope="write")) == INVALID_SCOPE
    assert parse_oauth_error(request_token(api, scope="read admin")) == INVALID_SCOPE
    response = api.post("/api/v2/books", json=build_book(), headers=obtain_header(api, "read"))
    assert response.status_code == 403


def test_what_belongs_to_a_user_is_refused(api: httpx.Client, program: Application) -> None:
    program.allowance.scopes = "read write webhooks"
    program.allowance.save()
    header = obtain_header(api, "read write webhooks")
    requests: dict[str, dict[str, Any]] = {
        "/api/v2/operations": {"kind": "edit", "filter": {}, "set": {"genre": "Novel"}},
        "/api/v2/webhooks": {"url": "https://receiver.example/", "events": ["*"]},
        "/api/v2/api-keys": {"name": "More", "scopes": "read"},
    }
    for address, body in requests.items():
        assert api.get(address, headers=header).status_code == 403, address
        assert api.post(address, json=body, headers=header).status_code == 403, address
    assert api.get("/api/v2/events", headers=header).status_code == 200


@pytest.mark.parametrize("end", ["revoked", "ended", "deleted", "fewer scopes"])
def test_an_end_of_its_access_ends_its_tokens(api: httpx.Client, program: Application, end: str) -> None:
    token = request_token(api, scope="read write").json()["access_token"]
    if end == "revoked":
        assert api.post("/oauth/revoke", data={"token": token}, headers=AUTHENTICATION).status_code == 200
    elif end == "ended":
        revocations.revoke_authorizations(Authorization.objects.all(), timezone.now())
    elif end == "deleted":
        program.delete()
    else:
        registration.change_app(program, frozenset({"read"}), timezone.now())
    revocations.REVOCATION_LIST.invalidate()
    create_confidential_app()
    description = api.post("/oauth/introspect", data={"token": token}, headers=build_basic_header("bookshop", SECRET))
    assert description.json() == {"active": False}
    assert api.get("/api/v2/books", headers=build_bearer_header(token)).status_code == 401


def test_an_app_stops_with_its_owner(api: httpx.Client, program: Application) -> None:
    program.user = create_reader()
    program.save()
    header = obtain_header(api)
    deactivate(program.user)
    revocations.REVOCATION_LIST.invalidate()
    assert api.get("/api/v2/books", headers=header).status_code == 401
    assert parse_oauth_error(request_token(api)) == (400, "unauthorized_client")
    assert not Authorization.objects.active(timezone.now()).exists()
    # What others own goes on.
    program.user.is_active = True
    program.user.save()
    header = obtain_header(api)
    deactivate(create_reader("other"))
    revocations.REVOCATION_LIST.invalidate()
    assert api.get("/api/v2/books", headers=header).status_code == 200


def test_tokens_with_the_same_scopes_have_one_authorization(api: httpx.Client, program: Application) -> None:
    for scope in ("read", "read", "read write"):
        request_token(api, scope=scope)
    assert sorted(Authorization.objects.values_list("scopes", flat=True)) == ["read", "read write"]
    Authorization.objects.update(created_at=timezone.now() - CONSENT_LIFETIME - timedelta(seconds=1))
    request_token(api, scope="read")
    assert Authorization.objects.active(timezone.now()).count() == 1


def test_a_subject_that_is_neither_user_nor_app_is_refused(api: httpx.Client, program: Application) -> None:
    for subject in ("another-app", "", "-1"):
        token = forge_token(build_claims(1, sub=subject, client_id=ID))
        assert api.get("/api/v2/books", headers=build_bearer_header(token)).status_code == 401, subject
    assert api.get("/api/v2/books", headers=build_bearer_header(forge_token(build_claims(1)))).status_code == 200
