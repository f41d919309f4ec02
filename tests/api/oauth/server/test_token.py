"""The responses of /oauth/token to a code (specification, Section 5; RFC 6749, 4.1.3 and 5; RFC 7636, 4.6)."""

import base64
import json
from datetime import timedelta
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F
from oauth2_provider.models import Application, Grant
from pytest_django import DjangoCaptureOnCommitCallbacks

from tests.support.forged_tokens import decode_token
from tests.support.oauth_flows import (
    CALLBACK,
    CHALLENGE_PARAMETERS,
    LOOPBACK,
    SECRET,
    VERIFIER,
    build_bearer_header,
    build_code_request,
    build_refresh_request,
    create_app,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    deactivate,
    deactivate_without_signal,
    obtain_code,
    parse_oauth_error,
)

ENDPOINT = "/oauth/token"
ENDPOINTS = ["/oauth/token", "/oauth/refresh", "/oauth/revoke", "/oauth/introspect"]
BASIC = 'Basic realm="Library API", charset="UTF-8"'


@pytest.fixture
def bookshop(db: None) -> Application:
    return create_confidential_app()


@pytest.fixture
def shelf(db: None) -> Application:
    return create_public_app()


def build_basic_header(client_id: str, secret: str) -> dict[str, str]:
    """Form-encodes both values first (RFC 6749, 2.3.1)."""
    return encode_basic_header(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode())


def encode_basic_header(credentials: bytes) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}


def post(api: httpx.Client, form: dict[str, str], **headers: Any) -> httpx.Response:
    return api.post(ENDPOINT, data=form, **headers)


def replay_code(api: httpx.Client, form: dict[str, str], capture_callbacks: DjangoCaptureOnCommitCallbacks) -> None:
    with capture_callbacks(execute=True):
        assert parse_oauth_error(post(api, form)) == (400, "invalid_grant")


def request_resource(api: httpx.Client, access_token: str) -> int:
    return api.get("/oauth/resource", headers=build_bearer_header(access_token)).status_code


@pytest.mark.parametrize("make", [create_confidential_app, create_public_app])
@pytest.mark.parametrize("challenge", [{}, CHALLENGE_PARAMETERS])
def test_a_code_is_redeemed_for_tokens(api: httpx.Client, make: Any, challenge: dict[str, str | None]) -> None:
    application = make()
    code = obtain_code(api, create_librarian(), application, **challenge)
    response = post(api, build_code_request(application, code, **({"code_verifier": VERIFIER} if challenge else {})))
    body = response.json()
    assert response.status_code == 200
    assert body == {
        "access_token": body["access_token"],
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": body["refresh_token"],
        "scope": "read write",
    }
    assert len(body["refresh_token"]) >= 43
    assert request_resource(api, body["access_token"]) == 200


def test_an_access_token_has_the_claims_of_rfc_9068(api: httpx.Client, bookshop: Application) -> None:
    user = create_librarian()
    body = post(api, build_code_request(bookshop, obtain_code(api, user, bookshop))).json()
    header, claims = decode_token(body["access_token"])
    assert header == {"alg": "RS256", "typ": "at+jwt", "kid": header["kid"]}
    assert claims == {
        "iss": settings.PUBLIC_URL,
        "aud": f"{settings.PUBLIC_URL}/api",
        "sub": str(user.pk),
        "client_id": "bookshop",
        "scope": "read write",
        "sid": claims["sid"],
        "jti": claims["jti"],
        "iat": claims["iat"],
        "exp": claims["iat"] + 3600,
    }


def test_tokens_are_not_cached(api: httpx.Client, bookshop: Application) -> None:
    """RFC 6749, 5.1."""
    granted = post(api, build_code_request(bookshop, obtain_code(api, create_reader(), bookshop)))
    refused = post(api, build_code_request(bookshop, "nonsense"))
    for response in (granted, refused):
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Type"] == "application/json"


def test_tokens_are_not_cached_by_http_1_0_proxies(api: httpx.Client, bookshop: Application) -> None:
    """RFC 6749, 5.1: the response also has Pragma."""
    response = post(api, build_code_request(bookshop, obtain_code(api, create_reader(), bookshop)))
    assert response.headers["Pragma"] == "no-cache"


def test_a_confidential_app_may_send_its_secret_in_the_header(api: httpx.Client, bookshop: Application) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), client_secret=None, client_id=None)
    assert post(api, form, headers=build_basic_header("bookshop", SECRET)).status_code == 200


def test_the_same_client_id_may_be_in_header_and_body(api: httpx.Client, bookshop: Application) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), client_secret=None)
    assert post(api, form, headers=build_basic_header("bookshop", SECRET)).status_code == 200


@pytest.mark.parametrize("secret", ["s p+a%c:e&=", "ünïcödé-ünïcödé", "%41%zz"])
def test_a_secret_may_have_any_characters(api: httpx.Client, secret: str) -> None:
    application = create_app("shop:1", "confidential", CALLBACK, "read", client_secret=secret)
    user = create_reader()
    header_form = build_code_request(
        application, obtain_code(api, user, application), client_secret=None, client_id=None
    )
    body_form = build_code_request(application, obtain_code(api, user, application), client_secret=secret)
    assert post(api, header_form, headers=build_basic_header("shop:1", secret)).status_code == 200
    assert post(api, body_form).status_code == 200


def test_two_ways_to_authenticate_are_refused(api: httpx.Client, bookshop: Application) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop))
    assert parse_oauth_error(post(api, form, headers=build_basic_header("bookshop", SECRET))) == (
        400,
        "invalid_request",
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "nobody"},
        {"client_id": None},
        {"client_id": "", "client_secret": ""},
        {"client_id": None, "client_secret": None},
        {"client_id": "Bookshop"},
        {"client_secret": "wrong"},
        {"client_secret": ""},
        {"client_secret": None},
        {"client_secret": f"{SECRET} "},
        {"client_secret": SECRET.upper()},
        {"client_id": "nobody", "client_secret": None},
        {"client_id": "shelf"},
        {"client_id": "shelf", "client_secret": "guess", "code_verifier": VERIFIER},
        {"client_id": "é" * 5000},
        {"client_secret": "é" * 5000},
    ],
)
def test_a_client_that_is_not_known_gets_nothing(
    api: httpx.Client, bookshop: Application, shelf: Application, changes: dict[str, str | None]
) -> None:
    response = post(api, build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), **changes))
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
    assert "WWW-Authenticate" not in response.headers
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        build_basic_header("bookshop", "wrong"),
        build_basic_header("bookshop", ""),
        build_basic_header("nobody", SECRET),
        build_basic_header("", ""),
        build_basic_header("shelf", ""),
        build_basic_header("shelf", "guess"),
        build_basic_header("book\0shop", SECRET),
        build_basic_header("bookshop", "\0"),
        encode_basic_header(b"bookshop"),
        encode_basic_header(b"\xff:\xff"),
        encode_basic_header(b"%ff:%ff"),
        {"Authorization": "Basic"},
        {"Authorization": "Basic "},
        {"Authorization": "Basic nonsense!"},
        {"Authorization": f"Basic {'a' * 5000}"},
    ],
)
def test_a_failed_basic_authentication_is_challenged_with_basic(
    api: httpx.Client, bookshop: Application, shelf: Application, headers: Any
) -> None:
    """RFC 6749, 5.2."""
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), client_secret=None, client_id=None)
    response = post(api, form, headers=headers)
    assert (response.status_code, response.json()) == (401, {"error": "invalid_client"})
    assert response.headers["WWW-Authenticate"] == BASIC


def test_the_ids_in_header_and_body_must_agree(api: httpx.Client, bookshop: Application) -> None:
    other = create_confidential_app("reseller")
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), client_secret=None)
    response = post(api, form, headers=build_basic_header(other.client_id, SECRET))
    assert parse_oauth_error(response) == (401, "invalid_client")


@pytest.mark.parametrize(
    "grant_type",
    [
        "password",
        "client_credentials",
        "implicit",
        "openid",
        "Authorization_Code",
        "code",
        "x" * 5000,
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ],
)
def test_other_grants_are_not_supported(api: httpx.Client, bookshop: Application, grant_type: str) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), grant_type=grant_type)
    response = post(api, form | {"username": "reader", "password": "reader"})
    assert (response.status_code, response.json()) == (400, {"error": "unsupported_grant_type"})


@pytest.mark.parametrize("changes", [{"grant_type": None}, {"grant_type": ""}, {"code": None}])
def test_grant_type_and_code_are_required(
    api: httpx.Client, bookshop: Application, changes: dict[str, str | None]
) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), **changes)
    assert parse_oauth_error(post(api, form)) == (400, "invalid_request")


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "nonsense"},
        {"code": "é" * 5000},
        {"redirect_uri": "https://app.example/other"},
        {"redirect_uri": "https://app.example/callback/"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "https://app.example/callback?a=1"},
        {"redirect_uri": "é" * 5000},
    ],
)
def test_another_code_or_redirect_uri_is_refused(
    api: httpx.Client, bookshop: Application, changes: dict[str, str | None]
) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), **changes)
    assert parse_oauth_error(post(api, form)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "redirect_uri", [None, "http://127.0.0.1/callback", "http://127.0.0.1:1/callback", "http://[::1]:51004/callback"]
)
def test_a_code_is_valid_only_for_the_port_of_its_redirect(
    api: httpx.Client, shelf: Application, redirect_uri: str | None
) -> None:
    form = build_code_request(shelf, obtain_code(api, create_reader(), shelf), redirect_uri=redirect_uri)
    assert parse_oauth_error(post(api, form)) == (400, "invalid_grant")


def test_a_code_for_another_registered_address_is_refused(api: httpx.Client) -> None:
    two = create_app("two", "confidential", f"{CALLBACK} https://a.example/two", "read", client_secret=SECRET)
    code = obtain_code(api, create_reader(), two)
    assert parse_oauth_error(post(api, build_code_request(two, code, redirect_uri="https://a.example/two"))) == (
        400,
        "invalid_grant",
    )
    assert post(api, build_code_request(two, code)).status_code == 200


def test_a_code_of_another_app_is_refused_and_stays_valid(
    api: httpx.Client, bookshop: Application, shelf: Application
) -> None:
    code = obtain_code(api, create_reader(), bookshop)
    stolen = {"redirect_uri": CALLBACK, "code_verifier": None}
    assert parse_oauth_error(post(api, build_code_request(create_confidential_app("reseller"), code))) == (
        400,
        "invalid_grant",
    )
    assert parse_oauth_error(post(api, build_code_request(shelf, code, **stolen))) == (400, "invalid_grant")
    assert post(api, build_code_request(bookshop, code)).status_code == 200


def test_an_expired_code_has_its_own_error(api: httpx.Client, bookshop: Application) -> None:
    code = obtain_code(api, create_reader(), bookshop)
    Grant.objects.update(expires=F("expires") - timedelta(minutes=10))
    response = post(api, build_code_request(bookshop, code))
    assert parse_oauth_error(response) == (400, "code_expired")


def test_another_app_does_not_learn_that_a_code_expired(api: httpx.Client, bookshop: Application) -> None:
    code = obtain_code(api, create_reader(), bookshop)
    Grant.objects.update(expires=F("expires") - timedelta(minutes=10))
    assert parse_oauth_error(post(api, build_code_request(create_confidential_app("reseller"), code))) == (
        400,
        "invalid_grant",
    )


@pytest.mark.parametrize("make", [create_confidential_app, create_public_app])
def test_a_replayed_code_ends_its_grant(
    api: httpx.Client, make: Any, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """RFC 6749, 4.1.2."""
    application = make()
    form = build_code_request(application, obtain_code(api, create_reader(), application))
    tokens = post(api, form).json()
    assert request_resource(api, tokens["access_token"]) == 200
    replay_code(api, form, django_capture_on_commit_callbacks)
    assert request_resource(api, tokens["access_token"]) == 401
    refresh_answer = post(api, build_refresh_request(application, tokens["refresh_token"]))
    assert parse_oauth_error(refresh_answer) == (400, "invalid_grant")


def test_a_replayed_code_ends_refreshed_tokens_too(
    api: httpx.Client, shelf: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    form = build_code_request(shelf, obtain_code(api, create_reader(), shelf))
    second = post(api, build_refresh_request(shelf, post(api, form).json()["refresh_token"])).json()
    replay_code(api, form, django_capture_on_commit_callbacks)
    assert request_resource(api, second["access_token"]) == 401
    assert parse_oauth_error(post(api, build_refresh_request(shelf, second["refresh_token"]))) == (400, "invalid_grant")


def test_a_replayed_code_ends_no_other_grant(
    api: httpx.Client, bookshop: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user = create_reader()
    other = post(api, build_code_request(bookshop, obtain_code(api, user, bookshop))).json()
    form = build_code_request(bookshop, obtain_code(api, user, bookshop))
    assert post(api, form).status_code == 200
    replay_code(api, form, django_capture_on_commit_callbacks)
    assert request_resource(api, other["access_token"]) == 200
    assert post(api, build_refresh_request(bookshop, other["refresh_token"])).status_code == 200


def test_another_app_that_replays_a_code_ends_nothing(
    api: httpx.Client,
    bookshop: Application,
    shelf: Application,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop))
    tokens = post(api, form).json()
    replays = [
        build_code_request(create_confidential_app("reseller"), form["code"]),
        build_code_request(shelf, form["code"], redirect_uri=CALLBACK),
    ]
    for replay in replays:
        replay_code(api, replay, django_capture_on_commit_callbacks)
    assert parse_oauth_error(post(api, form | {"client_secret": "wrong"})) == (401, "invalid_client")
    assert request_resource(api, tokens["access_token"]) == 200
    assert post(api, build_refresh_request(bookshop, tokens["refresh_token"])).status_code == 200


@pytest.mark.parametrize("make", [create_confidential_app, create_public_app])
@pytest.mark.parametrize(
    ("verifier", "error"),
    [
        (None, "invalid_request"),
        ("", "invalid_request"),
        ("w" * 43, "invalid_grant"),
        (VERIFIER.upper(), "invalid_grant"),
        (VERIFIER[:-1], "invalid_grant"),
        (f"{VERIFIER}\n", "invalid_grant"),
        (f"{VERIFIER}v", "invalid_grant"),
        ("v" * 129, "invalid_grant"),
        ("v" * 5000, "invalid_grant"),
        ("é" * 43, "invalid_grant"),
        (CHALLENGE_PARAMETERS["code_challenge"], "invalid_grant"),
    ],
)
def test_only_the_verifier_of_the_challenge_is_accepted(
    api: httpx.Client, make: Any, verifier: str | None, error: str
) -> None:
    application = make()
    code = obtain_code(api, create_reader(), application, **CHALLENGE_PARAMETERS)
    assert parse_oauth_error(post(api, build_code_request(application, code, code_verifier=verifier))) == (400, error)


def test_a_verifier_without_a_challenge_is_refused(api: httpx.Client, bookshop: Application) -> None:
    """RFC 9700, 4.8.2: an attacker may have removed the challenge from the authorization request."""
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop), code_verifier=VERIFIER)
    assert parse_oauth_error(post(api, form)) == (400, "invalid_grant")


@pytest.mark.parametrize("change", [deactivate, deactivate_without_signal, User.delete])
def test_the_code_of_a_user_who_is_inactive_or_deleted_is_refused(
    api: httpx.Client, bookshop: Application, change: Any
) -> None:
    user = create_reader()
    code = obtain_code(api, user, bookshop)
    change(user)
    assert parse_oauth_error(post(api, build_code_request(bookshop, code))) == (400, "invalid_grant")


def test_a_code_from_before_a_new_password_is_refused(api: httpx.Client, bookshop: Application) -> None:
    user = create_reader()
    code = obtain_code(api, user, bookshop)
    user.set_password("a new one, long enough")
    user.save()
    assert parse_oauth_error(post(api, build_code_request(bookshop, code))) == (400, "invalid_grant")


def test_a_role_lost_since_consent_is_not_granted(api: httpx.Client, bookshop: Application) -> None:
    user = create_librarian()
    code = obtain_code(api, user, bookshop)
    user.groups.clear()
    assert post(api, build_code_request(bookshop, code)).json()["scope"] == "read"


def test_a_scope_the_app_lost_since_consent_is_not_granted(api: httpx.Client, bookshop: Application) -> None:
    code = obtain_code(api, create_librarian(), bookshop)
    bookshop.allowance.scopes = "read"
    bookshop.allowance.save()
    assert post(api, build_code_request(bookshop, code)).json()["scope"] == "read"


def test_the_scope_is_that_of_the_consent(api: httpx.Client, bookshop: Application) -> None:
    code = obtain_code(api, create_librarian(), bookshop, scope="read")
    assert post(api, build_code_request(bookshop, code) | {"scope": "read write"}).json()["scope"] == "read"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "code", "token", "extra"])
def test_a_repeated_parameter_is_refused(api: httpx.Client, bookshop: Application, endpoint: str, name: str) -> None:
    form = {**build_code_request(bookshop, "code"), "token": "t", "extra": "e"}
    body = urlencode([*form.items(), (name, form[name])])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert parse_oauth_error(api.post(endpoint, content=body, headers=headers)) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "code", "refresh_token", "token"])
def test_nul_is_refused_in_every_parameter(api: httpx.Client, bookshop: Application, endpoint: str, name: str) -> None:
    response = api.post(endpoint, data={**build_code_request(bookshop, "code"), name: "a\0b"})
    assert parse_oauth_error(response) == (400, "invalid_request")


@pytest.mark.parametrize("name", ["client_id", "client_secret", "code", "redirect_uri", "grant_type", "scope"])
@pytest.mark.parametrize("value", ["%ff%fe", "%ed%a0%80", "x" * 100_000, "%", "a%00b%"])
def test_no_value_of_a_form_causes_a_failure(api: httpx.Client, bookshop: Application, name: str, value: str) -> None:
    others = urlencode(build_code_request(bookshop, "nonsense", **{name: None}))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = api.post(ENDPOINT, content=f"{others}&{name}={value}", headers=headers)
    assert response.status_code in (400, 401)
    assert response.json()["error"] in ("invalid_client", "invalid_grant", "invalid_request", "unsupported_grant_type")


def test_a_form_over_the_limit_is_refused(api: httpx.Client, bookshop: Application) -> None:
    assert post(api, build_code_request(bookshop, "x" * 1024 * 1024)).status_code == 400


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("media_type", ["application/json", "multipart/form-data; boundary=b", "text/plain", ""])
def test_only_forms_are_read(api: httpx.Client, bookshop: Application, endpoint: str, media_type: str) -> None:
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop))
    response = api.post(endpoint, content=json.dumps(form), headers={"Content-Type": media_type})
    assert parse_oauth_error(response) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("names", [["client_id", "client_secret"], ["code"], ["grant_type"]])
def test_parameters_in_the_query_are_refused(
    api: httpx.Client, bookshop: Application, endpoint: str, names: list[str]
) -> None:
    """RFC 6749, 2.3.1: queries are logged."""
    form = build_code_request(bookshop, obtain_code(api, create_reader(), bookshop))
    query = {name: form.pop(name) for name in names}
    assert parse_oauth_error(api.post(endpoint, params=query, data=form)) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_post_is_allowed(api: httpx.Client, bookshop: Application, endpoint: str, method: str) -> None:
    response = api.request(
        method, endpoint, params=build_code_request(bookshop, obtain_code(api, create_reader(), bookshop))
    )
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_a_refused_request_leaves_the_code_valid(api: httpx.Client, bookshop: Application, shelf: Application) -> None:
    code = obtain_code(api, create_reader(), shelf)
    assert parse_oauth_error(post(api, build_code_request(shelf, code, code_verifier="w" * 43))) == (
        400,
        "invalid_grant",
    )
    assert parse_oauth_error(post(api, build_code_request(shelf, code, redirect_uri=CALLBACK))) == (
        400,
        "invalid_grant",
    )
    assert post(api, build_code_request(shelf, code, redirect_uri=LOOPBACK)).status_code == 200


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_session_is_no_credential_here(api: httpx.Client, bookshop: Application, endpoint: str) -> None:
    """Otherwise a page of another site could act for the user who reads it."""
    form = build_code_request(
        bookshop, obtain_code(api, create_librarian(), bookshop), client_id=None, client_secret=None
    )
    assert (
        parse_oauth_error(
            api.post(endpoint, data={**form, "grant_type": "refresh_token", "refresh_token": "x", "token": "x"})
        )[0]
        == 401
    )
