"""The responses of /oauth/token to a code (specification, Section 5; RFC 6749, 4.1.3 and 5; RFC 7636, 4.6).

What the endpoints for apps have in common, such as how an app authenticates, is tested here for all of them.
"""

from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from oauth2_provider.models import Application

from tests.support.forged_tokens import decode_token
from tests.support.oauth_flows import (
    CALLBACK,
    CHALLENGE_PARAMETERS,
    INVALID_CLIENT,
    INVALID_GRANT,
    INVALID_REQUEST,
    SECRET,
    VERIFIER,
    build_basic_header,
    build_code_request,
    build_refresh_request,
    create_app,
    create_confidential_app,
    create_librarian,
    create_reader,
    deactivate,
    deactivate_without_signal,
    encode_basic_header,
    find_granted_scope,
    obtain_code,
    parse_oauth_error,
    sign_in,
)

ENDPOINT = "/oauth/token"
ENDPOINTS = ["/oauth/token", "/oauth/refresh", "/oauth/revoke", "/oauth/introspect"]
BASIC = 'Basic realm="Library API", charset="UTF-8"'
UNSUPPORTED_GRANT = (400, "unsupported_grant_type")
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def code(api: httpx.Client, bookshop: Application) -> str:
    """A code of a reader for the bookshop."""
    return obtain_code(api, create_reader(), bookshop)


def build_form(endpoint: str, application: Application, **changes: str | None) -> dict[str, str]:
    """Returns a form that each endpoint reads; None leaves a field out."""
    grant_type = "refresh_token" if endpoint == "/oauth/refresh" else "authorization_code"
    form = build_code_request(application, "code", **{"grant_type": grant_type, **changes})
    return {**form, "token": "t", "refresh_token": "r"}


def post(api: httpx.Client, form: dict[str, str], **headers: Any) -> httpx.Response:
    return api.post(ENDPOINT, data=form, **headers)


def test_a_code_is_redeemed_for_tokens(api: httpx.Client, app: Application) -> None:
    user = create_librarian()
    code = obtain_code(api, user, app)
    response = post(api, build_code_request(app, code, refresh_token="chosen-by-the-app"))
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
    assert body["refresh_token"] != "chosen-by-the-app"
    assert find_granted_scope(api, body["access_token"]) == "read write"
    header, claims = decode_token(body["access_token"])
    # RFC 9068.
    assert header == {"alg": "RS256", "typ": "at+jwt", "kid": header["kid"]}
    assert claims == {
        "iss": settings.PUBLIC_URL,
        "aud": f"{settings.PUBLIC_URL}/api",
        "sub": str(user.pk),
        "client_id": app.client_id,
        "scope": "read write",
        "sid": claims["sid"],
        "jti": claims["jti"],
        "iat": claims["iat"],
        "exp": claims["iat"] + 3600,
        # RFC 9068, 2.2.3.1.
        "entitlements": [
            *(f"books.{action}_book" for action in ("add", "change", "delete", "view")),
            "books.view_history",
        ],
    }
    # RFC 6749, 5.1: also Pragma, for proxies of HTTP/1.0.
    for one in (response, post(api, build_code_request(app, "nonsense"))):
        headers = [one.headers[name] for name in ("Cache-Control", "Pragma", "Content-Type")]
        assert headers == ["no-store", "no-cache", "application/json"]


def test_a_confidential_app_may_send_its_secret_in_the_header(
    api: httpx.Client, bookshop: Application, code: str
) -> None:
    """An id in the body must be the same."""
    create_confidential_app("reseller")
    form = build_code_request(bookshop, code, client_secret=None)
    assert parse_oauth_error(post(api, form, headers=build_basic_header("reseller", SECRET))) == INVALID_CLIENT
    assert post(api, form, headers=build_basic_header("bookshop", SECRET)).status_code == 200


def test_a_secret_may_have_any_characters(api: httpx.Client, db: None) -> None:
    for number, secret in enumerate(("s p+a%c:e&=", "ünïcödé-ünïcödé", "%41%zz")):
        client_id = f"shop:{number}"
        application = create_app(client_id, "confidential", CALLBACK, "read", client_secret=secret)
        header_form = build_code_request(application, "x", client_secret=None, client_id=None)
        response = post(api, header_form, headers=build_basic_header(client_id, secret))
        assert parse_oauth_error(response) == INVALID_GRANT, secret
        assert parse_oauth_error(post(api, build_code_request(application, "x", client_secret=secret))) == INVALID_GRANT


def test_each_endpoint_reads_forms_of_apps_alone(api: httpx.Client, bookshop: Application) -> None:
    """The other rules of a form are tested at one of them. A session would let pages of other sites act for its user.

    RFC 6749, 2.3.1: queries are logged.
    """
    wrong_basic = build_basic_header("bookshop", "wrong")
    for endpoint in ENDPOINTS:
        sign_in(api, create_librarian(endpoint))
        form = build_form(endpoint, bookshop)
        anonymous = build_form(endpoint, bookshop, client_id=None, client_secret=None)
        repeated = urlencode([*form.items(), ("client_id", "bookshop")])
        responses = {
            "two ways to authenticate": api.post(endpoint, data=form, headers=build_basic_header("bookshop", SECRET)),
            "a repeated field": api.post(endpoint, content=repeated, headers=FORM_TYPE),
            "a field with NUL": api.post(endpoint, data={**form, "extra": "a\0b"}),
            "JSON": api.post(endpoint, json=form),
            "a query": api.post(endpoint, params={"client_id": "bookshop"}, data=anonymous),
            "a session": api.post(endpoint, data=anonymous),
            "a wrong secret": api.post(endpoint, data={**form, "client_secret": "wrong"}),
            "a wrong secret in the header": api.post(endpoint, data=anonymous, headers=wrong_basic),
        }
        errors = {name: parse_oauth_error(response) for name, response in responses.items()}
        assert errors == dict(zip(responses, [INVALID_REQUEST] * 5 + [INVALID_CLIENT] * 3, strict=True)), endpoint
        assert {response.headers["Cache-Control"] for response in responses.values()} == {"no-store"}
        challenges = [response.headers.get("WWW-Authenticate") for response in responses.values()]
        assert challenges == [None] * 7 + [BASIC], endpoint
        for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
            response = api.request(method, endpoint, params=form)
            assert (response.status_code, response.headers["Allow"]) == (405, "POST")


def test_a_client_that_is_not_known_gets_nothing(api: httpx.Client, bookshop: Application, shelf: Application) -> None:
    changes: list[dict[str, str | None]] = [
        {"client_id": None},
        {"client_id": "Bookshop"},
        {"client_secret": None},
        {"client_secret": f"{SECRET} "},
        {"client_id": "nobody", "client_secret": None},
        {"client_id": "shelf"},
        {"client_id": "shelf", "client_secret": "guess", "code_verifier": VERIFIER},
        {"client_id": "é" * 5000},
    ]
    for change in changes:
        response = post(api, build_form(ENDPOINT, bookshop, **change))
        assert (response.status_code, response.json()) == (401, {"error": "invalid_client"}), change
        assert "WWW-Authenticate" not in response.headers


def test_a_failed_basic_authentication_is_challenged_with_basic(
    api: httpx.Client, bookshop: Application, shelf: Application
) -> None:
    """RFC 6749, 5.2."""
    form = build_form(ENDPOINT, bookshop, client_secret=None, client_id=None)
    for headers in (
        build_basic_header("shelf", ""),
        build_basic_header("book\0shop", SECRET),
        encode_basic_header(b"bookshop"),
        encode_basic_header(b"\xff:\xff"),
        encode_basic_header(b"%ff:%ff"),
        {"Authorization": "Basic nonsense!"},
    ):
        response = post(api, form, headers=headers)
        assert (response.status_code, response.json()) == (401, {"error": "invalid_client"}), headers
        assert response.headers["WWW-Authenticate"] == BASIC


def test_another_grant_code_or_redirect_uri_is_refused(api: httpx.Client, bookshop: Application, code: str) -> None:
    cases: list[tuple[dict[str, str | None], tuple[int, str]]] = [
        ({"grant_type": None}, INVALID_REQUEST),
        ({"grant_type": ""}, INVALID_REQUEST),
        ({"grant_type": "password", "username": "reader", "password": "reader"}, UNSUPPORTED_GRANT),
        ({"grant_type": "client_credentials"}, UNSUPPORTED_GRANT),
        ({"grant_type": "Authorization_Code"}, UNSUPPORTED_GRANT),
        ({"code": None}, INVALID_REQUEST),
        ({"code": "é" * 5000}, INVALID_GRANT),
        ({"redirect_uri": "https://app.example/callback/"}, INVALID_GRANT),
        ({"redirect_uri": "https://app.example/callback?a=1"}, INVALID_GRANT),
        ({"redirect_uri": "é" * 5000}, INVALID_GRANT),
        # RFC 9700, 4.8.2: an attacker may have removed the challenge from the authorization request.
        ({"code_verifier": VERIFIER}, INVALID_GRANT),
    ]
    for changes, error in cases:
        assert parse_oauth_error(post(api, build_code_request(bookshop, code, **changes))) == error, changes
    assert post(api, build_code_request(bookshop, code)).status_code == 200


def test_a_code_needs_the_redirect_uri_of_its_request(
    api: httpx.Client, bookshop: Application, librarian: User, code: str
) -> None:
    """RFC 6749, 4.1.3: also where the app has only one. A request that named none leaves the choice to the app."""
    for empty in (None, ""):
        assert parse_oauth_error(post(api, build_code_request(bookshop, code, redirect_uri=empty))) == INVALID_GRANT
    assert post(api, build_code_request(bookshop, code)).status_code == 200
    for redirect_uri in (None, CALLBACK):
        unnamed = obtain_code(api, librarian, bookshop, redirect_uri=None)
        wrong = build_code_request(bookshop, unnamed, redirect_uri=f"{CALLBACK}?")
        assert parse_oauth_error(post(api, wrong)) == INVALID_GRANT
        assert post(api, build_code_request(bookshop, unnamed, redirect_uri=redirect_uri)).status_code == 200


def test_a_code_of_another_app_is_refused_and_stays_valid(
    api: httpx.Client, bookshop: Application, shelf: Application, code: str
) -> None:
    stolen = {"redirect_uri": CALLBACK, "code_verifier": None}
    forms = [build_code_request(create_confidential_app("reseller"), code), build_code_request(shelf, code, **stolen)]
    assert [parse_oauth_error(post(api, form)) for form in forms] == [INVALID_GRANT] * 2
    assert post(api, build_code_request(bookshop, code)).status_code == 200


def test_a_replayed_code_ends_its_grant_and_no_other(api: httpx.Client, shelf: Application) -> None:
    """RFC 6749, 4.1.2."""
    user = create_reader()
    other = post(api, build_code_request(shelf, obtain_code(api, user, shelf))).json()
    form = build_code_request(shelf, obtain_code(api, user, shelf))
    first = post(api, form).json()
    second = post(api, build_refresh_request(shelf, first["refresh_token"])).json()
    newest = second["refresh_token"]
    assert parse_oauth_error(post(api, form)) == INVALID_GRANT
    scopes = [find_granted_scope(api, tokens["access_token"]) for tokens in (first, second, other)]
    assert scopes == [None, None, "read"]
    assert parse_oauth_error(post(api, build_refresh_request(shelf, newest))) == INVALID_GRANT
    assert post(api, build_refresh_request(shelf, other["refresh_token"])).status_code == 200


def test_another_app_that_replays_a_code_ends_nothing(
    api: httpx.Client, bookshop: Application, shelf: Application, code: str
) -> None:
    form = build_code_request(bookshop, code)
    tokens = post(api, form).json()
    for replay in (
        build_code_request(create_confidential_app("reseller"), code),
        build_code_request(shelf, code, redirect_uri=CALLBACK),
    ):
        assert parse_oauth_error(post(api, replay)) == INVALID_GRANT
    assert parse_oauth_error(post(api, form | {"client_secret": "wrong"})) == INVALID_CLIENT
    assert find_granted_scope(api, tokens["access_token"]) == "read"
    assert post(api, build_refresh_request(bookshop, tokens["refresh_token"])).status_code == 200


def test_only_the_verifier_of_the_challenge_is_accepted(api: httpx.Client, app: Application) -> None:
    code = obtain_code(api, create_reader(), app, **CHALLENGE_PARAMETERS)
    errors = {
        None: INVALID_REQUEST,
        "w" * 43: INVALID_GRANT,
        VERIFIER[:-1]: INVALID_GRANT,
        f"{VERIFIER}\n": INVALID_GRANT,
        "v" * 129: INVALID_GRANT,
        CHALLENGE_PARAMETERS["code_challenge"]: INVALID_GRANT,
    }
    forms = [build_code_request(app, code, code_verifier=verifier) for verifier in errors]
    assert [parse_oauth_error(post(api, form)) for form in forms] == list(errors.values())
    assert post(api, build_code_request(app, code, code_verifier=VERIFIER)).status_code == 200


def set_password(user: User) -> None:
    user.set_password("a new one, long enough")
    user.save()


def test_a_code_ends_with_its_user(api: httpx.Client, bookshop: Application) -> None:
    for change in (deactivate, deactivate_without_signal, set_password):
        user = create_reader(change.__name__)
        code = obtain_code(api, user, bookshop)
        change(user)
        assert parse_oauth_error(post(api, build_code_request(bookshop, code))) == INVALID_GRANT, change


def test_what_person_or_app_lost_since_consent_is_not_granted(
    api: httpx.Client, bookshop: Application, librarian: User
) -> None:
    codes = [obtain_code(api, user, bookshop) for user in (librarian, create_librarian("other"))]
    librarian.groups.clear()
    assert post(api, build_code_request(bookshop, codes[0])).json()["scope"] == "read"
    bookshop.allowance.scopes = "read"
    bookshop.allowance.save()
    assert post(api, build_code_request(bookshop, codes[1])).json()["scope"] == "read"


def test_the_scope_is_that_of_the_consent(api: httpx.Client, bookshop: Application, librarian: User) -> None:
    code = obtain_code(api, librarian, bookshop, scope="read")
    assert post(api, build_code_request(bookshop, code) | {"scope": "read write"}).json()["scope"] == "read"


def test_no_value_of_a_form_causes_a_failure(api: httpx.Client, bookshop: Application) -> None:
    errors = {"invalid_client", "invalid_grant", "invalid_request", "unsupported_grant_type"}
    for name in ("client_id", "client_secret", "code", "redirect_uri", "grant_type", "scope"):
        others = urlencode(build_code_request(bookshop, "nonsense", **{name: None}))
        for value in ("%ff%fe", "%ed%a0%80", "%"):
            response = api.post(ENDPOINT, content=f"{others}&{name}={value}", headers=FORM_TYPE)
            assert response.status_code in (400, 401)
            assert response.json()["error"] in errors, (name, value)


def test_a_form_over_the_limit_is_refused(api: httpx.Client, bookshop: Application) -> None:
    assert post(api, build_code_request(bookshop, "x" * 1024 * 1024)).status_code == 400
