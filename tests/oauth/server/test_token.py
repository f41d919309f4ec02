"""What is answered at /oauth/token for a code (specification, Section 5; RFC 6749, 4.1.3 and 5; RFC 7636, 4.6)."""

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

from tests.support.forged_tokens import spoken
from tests.support.oauth_flows import (
    CALLBACK,
    CHALLENGED,
    LOOPBACK,
    SECRET,
    VERIFIER,
    app,
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
)

ENDPOINT = "/oauth/token"
ENDPOINTS = ["/oauth/token", "/oauth/refresh", "/oauth/revoke", "/oauth/introspect"]
BASIC = 'Basic realm="Library API", charset="UTF-8"'


@pytest.fixture
def bookshop(db: None) -> Application:
    return confidential_app()


@pytest.fixture
def shelf(db: None) -> Application:
    return public_app()


def basic(client_id: str, secret: str) -> dict[str, str]:
    """RFC 6749, 2.3.1: both are form-encoded first."""
    return plain_basic(f"{quote_plus(client_id)}:{quote_plus(secret)}".encode())


def plain_basic(credentials: bytes) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(credentials).decode()}"}


def post(api: httpx.Client, form: dict[str, str], **headers: Any) -> httpx.Response:
    return api.post(ENDPOINT, data=form, **headers)


def replayed(api: httpx.Client, form: dict[str, str], committed: DjangoCaptureOnCommitCallbacks) -> None:
    with committed(execute=True):
        assert refusal(post(api, form)) == (400, "invalid_grant")


def works(api: httpx.Client, access_token: str) -> int:
    return api.get("/oauth/resource", headers=bearer(access_token)).status_code


@pytest.mark.parametrize("make", [confidential_app, public_app])
@pytest.mark.parametrize("challenge", [{}, CHALLENGED])
def test_a_code_is_redeemed_for_tokens(api: httpx.Client, make: Any, challenge: dict[str, str | None]) -> None:
    application = make()
    code = code_for(api, librarian(), application, **challenge)
    answer = post(api, redemption(application, code, **({"code_verifier": VERIFIER} if challenge else {})))
    body = answer.json()
    assert answer.status_code == 200
    assert body == {
        "access_token": body["access_token"],
        "token_type": "Bearer",
        "expires_in": 3600,
        "refresh_token": body["refresh_token"],
        "scope": "read write",
    }
    assert len(body["refresh_token"]) >= 43
    assert works(api, body["access_token"]) == 200


def test_an_access_token_says_what_rfc_9068_asks_for(api: httpx.Client, bookshop: Application) -> None:
    user = librarian()
    body = post(api, redemption(bookshop, code_for(api, user, bookshop))).json()
    header, claims = spoken(body["access_token"])
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


def test_tokens_are_not_kept_by_anybody(api: httpx.Client, bookshop: Application) -> None:
    """RFC 6749, 5.1."""
    given = post(api, redemption(bookshop, code_for(api, reader(), bookshop)))
    refused = post(api, redemption(bookshop, "nonsense"))
    for answer in (given, refused):
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Type"] == "application/json"


def test_tokens_are_not_kept_by_proxies_of_old(api: httpx.Client, bookshop: Application) -> None:
    """RFC 6749, 5.1: Pragma, too."""
    given = post(api, redemption(bookshop, code_for(api, reader(), bookshop)))
    assert given.headers["Pragma"] == "no-cache"


def test_a_confidential_app_may_show_its_secret_in_the_header(api: httpx.Client, bookshop: Application) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop), client_secret=None, client_id=None)
    assert post(api, form, headers=basic("bookshop", SECRET)).status_code == 200


def test_an_id_beside_the_header_may_be_the_same(api: httpx.Client, bookshop: Application) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop), client_secret=None)
    assert post(api, form, headers=basic("bookshop", SECRET)).status_code == 200


@pytest.mark.parametrize("secret", ["s p+a%c:e&=", "ünïcödé-ünïcödé", "%41%zz"])
def test_a_secret_of_any_letters_is_read(api: httpx.Client, secret: str) -> None:
    application = app("shop:1", "confidential", CALLBACK, "read", client_secret=secret)
    user = reader()
    in_the_header = redemption(application, code_for(api, user, application), client_secret=None, client_id=None)
    in_the_body = redemption(application, code_for(api, user, application), client_secret=secret)
    assert post(api, in_the_header, headers=basic("shop:1", secret)).status_code == 200
    assert post(api, in_the_body).status_code == 200


def test_one_way_to_authenticate_is_enough(api: httpx.Client, bookshop: Application) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop))
    assert refusal(post(api, form, headers=basic("bookshop", SECRET))) == (400, "invalid_request")


@pytest.mark.parametrize(
    "changed",
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
    api: httpx.Client, bookshop: Application, shelf: Application, changed: dict[str, str | None]
) -> None:
    answer = post(api, redemption(bookshop, code_for(api, reader(), bookshop), **changed))
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
    assert "WWW-Authenticate" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "headers",
    [
        basic("bookshop", "wrong"),
        basic("bookshop", ""),
        basic("nobody", SECRET),
        basic("", ""),
        basic("shelf", ""),
        basic("shelf", "guess"),
        basic("book\0shop", SECRET),
        basic("bookshop", "\0"),
        plain_basic(b"bookshop"),
        plain_basic(b"\xff:\xff"),
        plain_basic(b"%ff:%ff"),
        {"Authorization": "Basic"},
        {"Authorization": "Basic "},
        {"Authorization": "Basic nonsense!"},
        {"Authorization": f"Basic {'a' * 5000}"},
    ],
)
def test_who_fails_with_basic_is_asked_for_basic(
    api: httpx.Client, bookshop: Application, shelf: Application, headers: Any
) -> None:
    """RFC 6749, 5.2."""
    form = redemption(bookshop, code_for(api, reader(), bookshop), client_secret=None, client_id=None)
    answer = post(api, form, headers=headers)
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
    assert answer.headers["WWW-Authenticate"] == BASIC


def test_the_ids_in_header_and_body_must_agree(api: httpx.Client, bookshop: Application) -> None:
    other = confidential_app("reseller")
    form = redemption(bookshop, code_for(api, reader(), bookshop), client_secret=None)
    answer = post(api, form, headers=basic(other.client_id, SECRET))
    assert refusal(answer) == (401, "invalid_client")


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
    form = redemption(bookshop, code_for(api, reader(), bookshop), grant_type=grant_type)
    answer = post(api, form | {"username": "reader", "password": "reader"})
    assert (answer.status_code, answer.json()) == (400, {"error": "unsupported_grant_type"})


@pytest.mark.parametrize("changed", [{"grant_type": None}, {"grant_type": ""}, {"code": None}])
def test_grant_type_and_code_are_required(
    api: httpx.Client, bookshop: Application, changed: dict[str, str | None]
) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop), **changed)
    assert refusal(post(api, form)) == (400, "invalid_request")


@pytest.mark.parametrize(
    "changed",
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
def test_a_code_is_good_as_it_was_given(
    api: httpx.Client, bookshop: Application, changed: dict[str, str | None]
) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop), **changed)
    assert refusal(post(api, form)) == (400, "invalid_grant")


@pytest.mark.parametrize(
    "redirect_uri", [None, "http://127.0.0.1/callback", "http://127.0.0.1:1/callback", "http://[::1]:51004/callback"]
)
def test_a_code_is_good_for_the_port_it_was_given_to(
    api: httpx.Client, shelf: Application, redirect_uri: str | None
) -> None:
    form = redemption(shelf, code_for(api, reader(), shelf), redirect_uri=redirect_uri)
    assert refusal(post(api, form)) == (400, "invalid_grant")


def test_a_code_for_another_registered_address_is_refused(api: httpx.Client) -> None:
    two = app("two", "confidential", f"{CALLBACK} https://a.example/two", "read", client_secret=SECRET)
    code = code_for(api, reader(), two)
    assert refusal(post(api, redemption(two, code, redirect_uri="https://a.example/two"))) == (400, "invalid_grant")
    assert post(api, redemption(two, code)).status_code == 200


def test_a_code_of_another_app_is_refused_and_stays_good(
    api: httpx.Client, bookshop: Application, shelf: Application
) -> None:
    code = code_for(api, reader(), bookshop)
    stolen = {"redirect_uri": CALLBACK, "code_verifier": None}
    assert refusal(post(api, redemption(confidential_app("reseller"), code))) == (400, "invalid_grant")
    assert refusal(post(api, redemption(shelf, code, **stolen))) == (400, "invalid_grant")
    assert post(api, redemption(bookshop, code)).status_code == 200


def test_an_expired_code_is_told_apart(api: httpx.Client, bookshop: Application) -> None:
    code = code_for(api, reader(), bookshop)
    Grant.objects.update(expires=F("expires") - timedelta(minutes=10))
    answer = post(api, redemption(bookshop, code))
    assert refusal(answer) == (400, "code_expired")


def test_another_app_does_not_learn_that_a_code_expired(api: httpx.Client, bookshop: Application) -> None:
    code = code_for(api, reader(), bookshop)
    Grant.objects.update(expires=F("expires") - timedelta(minutes=10))
    assert refusal(post(api, redemption(confidential_app("reseller"), code))) == (400, "invalid_grant")


@pytest.mark.parametrize("make", [confidential_app, public_app])
def test_a_replayed_code_ends_what_it_was_redeemed_for(
    api: httpx.Client, make: Any, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    """RFC 6749, 4.1.2."""
    application = make()
    form = redemption(application, code_for(api, reader(), application))
    given = post(api, form).json()
    assert works(api, given["access_token"]) == 200
    replayed(api, form, django_capture_on_commit_callbacks)
    assert works(api, given["access_token"]) == 401
    refreshed = post(api, refreshing(application, given["refresh_token"]))
    assert refusal(refreshed) == (400, "invalid_grant")


def test_a_replayed_code_ends_what_came_by_refreshing_too(
    api: httpx.Client, shelf: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    form = redemption(shelf, code_for(api, reader(), shelf))
    second = post(api, refreshing(shelf, post(api, form).json()["refresh_token"])).json()
    replayed(api, form, django_capture_on_commit_callbacks)
    assert works(api, second["access_token"]) == 401
    assert refusal(post(api, refreshing(shelf, second["refresh_token"]))) == (400, "invalid_grant")


def test_a_replayed_code_ends_nothing_else(
    api: httpx.Client, bookshop: Application, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    user = reader()
    other = post(api, redemption(bookshop, code_for(api, user, bookshop))).json()
    form = redemption(bookshop, code_for(api, user, bookshop))
    assert post(api, form).status_code == 200
    replayed(api, form, django_capture_on_commit_callbacks)
    assert works(api, other["access_token"]) == 200
    assert post(api, refreshing(bookshop, other["refresh_token"])).status_code == 200


def test_who_replays_the_code_of_another_app_ends_nothing(
    api: httpx.Client,
    bookshop: Application,
    shelf: Application,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop))
    given = post(api, form).json()
    replays = [
        redemption(confidential_app("reseller"), form["code"]),
        redemption(shelf, form["code"], redirect_uri=CALLBACK),
    ]
    for replay in replays:
        replayed(api, replay, django_capture_on_commit_callbacks)
    assert refusal(post(api, form | {"client_secret": "wrong"})) == (401, "invalid_client")
    assert works(api, given["access_token"]) == 200
    assert post(api, refreshing(bookshop, given["refresh_token"])).status_code == 200


@pytest.mark.parametrize("make", [confidential_app, public_app])
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
        (CHALLENGED["code_challenge"], "invalid_grant"),
    ],
)
def test_only_the_verifier_of_the_challenge_will_do(
    api: httpx.Client, make: Any, verifier: str | None, error: str
) -> None:
    application = make()
    code = code_for(api, reader(), application, **CHALLENGED)
    assert refusal(post(api, redemption(application, code, code_verifier=verifier))) == (400, error)


def test_a_verifier_nobody_asked_for_is_refused(api: httpx.Client, bookshop: Application) -> None:
    """RFC 9700, 4.8.2: a challenge may have been taken out of the request on its way."""
    form = redemption(bookshop, code_for(api, reader(), bookshop), code_verifier=VERIFIER)
    assert refusal(post(api, form)) == (400, "invalid_grant")


@pytest.mark.parametrize("change", [deactivated, deactivated_silently, User.delete])
def test_the_code_of_one_who_is_gone_is_over(api: httpx.Client, bookshop: Application, change: Any) -> None:
    user = reader()
    code = code_for(api, user, bookshop)
    change(user)
    assert refusal(post(api, redemption(bookshop, code))) == (400, "invalid_grant")


def test_a_code_from_before_a_new_password_is_over(api: httpx.Client, bookshop: Application) -> None:
    user = reader()
    code = code_for(api, user, bookshop)
    user.set_password("a new one, long enough")
    user.save()
    assert refusal(post(api, redemption(bookshop, code))) == (400, "invalid_grant")


def test_a_role_lost_since_consent_is_not_granted(api: httpx.Client, bookshop: Application) -> None:
    user = librarian()
    code = code_for(api, user, bookshop)
    user.groups.clear()
    assert post(api, redemption(bookshop, code)).json()["scope"] == "read"


def test_a_scope_the_app_lost_since_consent_is_not_granted(api: httpx.Client, bookshop: Application) -> None:
    code = code_for(api, librarian(), bookshop)
    bookshop.allowance.scopes = "read"
    bookshop.allowance.save()
    assert post(api, redemption(bookshop, code)).json()["scope"] == "read"


def test_scope_is_settled_by_consent(api: httpx.Client, bookshop: Application) -> None:
    code = code_for(api, librarian(), bookshop, scope="read")
    assert post(api, redemption(bookshop, code) | {"scope": "read write"}).json()["scope"] == "read"


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "code", "token", "extra"])
def test_a_parameter_is_given_once(api: httpx.Client, bookshop: Application, endpoint: str, name: str) -> None:
    form = {**redemption(bookshop, "code"), "token": "t", "extra": "e"}
    body = urlencode([*form.items(), (name, form[name])])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert refusal(api.post(endpoint, content=body, headers=headers)) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "code", "refresh_token", "token"])
def test_nul_is_refused_wherever_it_is(api: httpx.Client, bookshop: Application, endpoint: str, name: str) -> None:
    answer = api.post(endpoint, data={**redemption(bookshop, "code"), name: "a\0b"})
    assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize("name", ["client_id", "client_secret", "code", "redirect_uri", "grant_type", "scope"])
@pytest.mark.parametrize("value", ["%ff%fe", "%ed%a0%80", "x" * 100_000, "%", "a%00b%"])
def test_no_value_of_a_form_harms(api: httpx.Client, bookshop: Application, name: str, value: str) -> None:
    others = urlencode(redemption(bookshop, "nonsense", **{name: None}))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = api.post(ENDPOINT, content=f"{others}&{name}={value}", headers=headers)
    assert answer.status_code in (400, 401)
    assert answer.json()["error"] in ("invalid_client", "invalid_grant", "invalid_request", "unsupported_grant_type")


def test_a_form_over_the_limit_is_refused(api: httpx.Client, bookshop: Application) -> None:
    assert post(api, redemption(bookshop, "x" * 1024 * 1024)).status_code == 400


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("media_type", ["application/json", "multipart/form-data; boundary=b", "text/plain", ""])
def test_only_forms_are_read(api: httpx.Client, bookshop: Application, endpoint: str, media_type: str) -> None:
    form = redemption(bookshop, code_for(api, reader(), bookshop))
    answer = api.post(endpoint, content=json.dumps(form), headers={"Content-Type": media_type})
    assert refusal(answer) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("names", [["client_id", "client_secret"], ["code"], ["grant_type"]])
def test_what_stands_in_the_query_is_refused(
    api: httpx.Client, bookshop: Application, endpoint: str, names: list[str]
) -> None:
    """RFC 6749, 2.3.1: queries are logged."""
    form = redemption(bookshop, code_for(api, reader(), bookshop))
    query = {name: form.pop(name) for name in names}
    assert refusal(api.post(endpoint, params=query, data=form)) == (400, "invalid_request")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "PATCH", "DELETE"])
def test_only_post_is_allowed(api: httpx.Client, bookshop: Application, endpoint: str, method: str) -> None:
    answer = api.request(method, endpoint, params=redemption(bookshop, code_for(api, reader(), bookshop)))
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_a_refused_request_leaves_the_code_good(api: httpx.Client, bookshop: Application, shelf: Application) -> None:
    code = code_for(api, reader(), shelf)
    assert refusal(post(api, redemption(shelf, code, code_verifier="w" * 43))) == (400, "invalid_grant")
    assert refusal(post(api, redemption(shelf, code, redirect_uri=CALLBACK))) == (400, "invalid_grant")
    assert post(api, redemption(shelf, code, redirect_uri=LOOPBACK)).status_code == 200


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_session_is_no_credential_here(api: httpx.Client, bookshop: Application, endpoint: str) -> None:
    """So that no page of another site can speak for the person who reads it."""
    form = redemption(bookshop, code_for(api, librarian(), bookshop), client_id=None, client_secret=None)
    assert (
        refusal(api.post(endpoint, data={**form, "grant_type": "refresh_token", "refresh_token": "x", "token": "x"}))[0]
        == 401
    )
