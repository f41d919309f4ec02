"""The responses of /oauth/authorize before and after sign-in (specification, Section 5; RFC 6749, 4.1)."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F
from oauth2_provider.models import Application, Grant

from oauth.models import Allowance
from tests.support.oauth_flows import (
    CALLBACK,
    CHALLENGE,
    CHALLENGE_PARAMETERS,
    LOOPBACK,
    build_authorization_request,
    build_code_request,
    create_app,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    obtain_code,
    obtain_tokens,
    parse_oauth_error,
    parse_redirect,
    read_hidden_fields,
    sign_in,
    submit_consent,
)
from tests.support.responses import parse_allow

PAGE = "/oauth/authorize"
ISSUER = settings.PUBLIC_URL


@pytest.fixture(params=["anonymous", "signed in"])
def visitor(request: pytest.FixtureRequest, api: httpx.Client) -> httpx.Client:
    if request.param == "signed in":
        sign_in(api, create_librarian())
    return api


def create_superuser(name: str = "director") -> User:
    return User.objects.create(username=name, is_superuser=True)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_id": None}, "invalid_client"),
        ({"client_id": ""}, "invalid_client"),
        ({"client_id": "nobody"}, "invalid_client"),
        ({"client_id": "BOOKSHOP"}, "invalid_client"),
        ({"client_id": "é" * 5000}, "invalid_client"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_type": ""}, "unsupported_response_type"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "barcode"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": "none"}, "unsupported_response_type"),
        ({"client_id": "nobody", "response_type": "token", "redirect_uri": "https://evil.example/"}, "invalid_client"),
        ({"redirect_uri": "https://evil.example/", "response_type": "token"}, "invalid_request"),
    ],
)
def test_a_wrong_client_or_response_type_is_answered_without_a_redirect(
    visitor: httpx.Client, changes: dict[str, str | None], error: str
) -> None:
    response = visitor.get(PAGE, params=build_authorization_request(create_confidential_app(), **changes))
    assert parse_oauth_error(response) == (400, error)
    assert "Location" not in response.headers


@pytest.mark.parametrize("grant_type", ["client-credentials", "password", "implicit"])
def test_an_app_for_another_grant_is_refused(visitor: httpx.Client, grant_type: str) -> None:
    application = create_confidential_app()
    Application.objects.update(authorization_grant_type=grant_type)
    assert parse_oauth_error(visitor.get(PAGE, params=build_authorization_request(application))) == (
        400,
        "unauthorized_client",
    )


@pytest.mark.parametrize(
    "redirect_uri",
    [
        "https://evil.example/callback",
        "https://app.example.evil.example/callback",
        "https://app.example@evil.example/callback",
        "https://evil.example#@app.example/callback",
        "https://evil.example\\@app.example/callback",
        "https://someone@app.example/callback",
        "https://app.example/callback#",
        "https://app.example/callback#fragment",
        "https://app.example:8443/callback",
        "https://app.example:443/callback",
        "https://app.example/callback/",
        "https://app.example/callback/../elsewhere",
        "https://app.example/callback?next=https://evil.example",
        "https://app.example/Callback",
        "https://APP.example/callback",
        "http://app.example/callback",
        "//app.example/callback",
        "/callback",
        "javascript:alert(1)",
        "https://app.example/callback\r\nSet-Cookie: a=b",
        "https://app.example/callback https://evil.example/",
        "https://[app.example/callback",
        "https://app.example:99999/callback",
        "https://app.example/" + "a" * 5000,
    ],
)
def test_nobody_is_sent_to_an_address_that_the_app_has_not_registered(visitor: httpx.Client, redirect_uri: str) -> None:
    response = visitor.get(
        PAGE, params=build_authorization_request(create_confidential_app(), redirect_uri=redirect_uri)
    )
    assert parse_oauth_error(response) == (400, "invalid_request")
    assert "Location" not in response.headers


@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:65535/callback"),
        ("http://127.0.0.1:8000/callback", "http://127.0.0.1:51004/callback"),
        ("http://[::1]/callback", "http://[::1]:51004/callback"),
        ("http://localhost:3000/callback", "http://localhost:3000/callback"),
        ("https://a.example/one https://a.example/two", "https://a.example/two"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=1"),
    ],
)
def test_a_registered_address_is_redirected_to(api: httpx.Client, registered: str, requested: str) -> None:
    shelf = create_app("shelf", "public", registered, "read", client_secret="")
    sign_in(api, create_reader())
    response = submit_consent(api, build_authorization_request(shelf, redirect_uri=requested))
    assert parse_redirect(response).keys() - {"shop"} == {"code", "state", "iss"}
    assert response.headers["Location"].startswith(requested)


@pytest.mark.parametrize(
    ("registered", "requested"),
    [
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/elsewhere"),
        ("http://127.0.0.1/callback", "https://127.0.0.1:51004/callback"),
        ("http://127.0.0.1/callback", "http://localhost:51004/callback"),
        ("http://127.0.0.1/callback", "http://[::1]:51004/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.2/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback"),
        ("http://127.0.0.1/callback", "http://someone@127.0.0.1/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/callback#fragment"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:x/callback"),
        ("http://localhost:3000/callback", "http://localhost:3001/callback"),
        ("http://localhost:3000/callback", "http://localhost/callback"),
        ("http://192.0.2.1/callback", "http://192.0.2.1:3000/callback"),
        ("https://a.example/one?shop=1", "https://a.example/one"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=2"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=1&shop=2"),
    ],
)
def test_only_the_port_of_a_loopback_address_is_free(visitor: httpx.Client, registered: str, requested: str) -> None:
    shelf = create_app("shelf", "public", registered, "read", client_secret="")
    assert parse_oauth_error(visitor.get(PAGE, params=build_authorization_request(shelf, redirect_uri=requested))) == (
        400,
        "invalid_request",
    )


def test_the_redirect_uri_may_be_omitted_where_the_app_has_one(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    response = submit_consent(api, build_authorization_request(create_confidential_app(), redirect_uri=None))
    assert response.headers["Location"].startswith(f"{CALLBACK}?code=")


def test_the_redirect_uri_is_required_where_the_app_has_two(visitor: httpx.Client) -> None:
    application = create_app("two", "confidential", "https://a.example/one https://a.example/two", "read")
    assert parse_oauth_error(visitor.get(PAGE, params=build_authorization_request(application, redirect_uri=None))) == (
        400,
        "invalid_request",
    )


@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"]
)
def test_a_repeated_parameter_is_refused(visitor: httpx.Client, name: str) -> None:
    requested = build_authorization_request(create_public_app())
    response = visitor.get(f"{PAGE}?{urlencode([*requested.items(), (name, requested[name])])}")
    assert parse_oauth_error(response) == (400, "invalid_request")
    assert "Location" not in response.headers


@pytest.mark.parametrize(
    "name",
    [
        "client_id",
        "redirect_uri",
        "response_type",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
        "nonce",
    ],
)
def test_nul_is_refused_in_every_parameter(visitor: httpx.Client, name: str) -> None:
    response = visitor.get(PAGE, params=build_authorization_request(create_public_app(), **{name: "a\0b"}))
    assert parse_oauth_error(response) == (400, "invalid_request")


def test_a_client_of_undecodable_bytes_is_unknown(visitor: httpx.Client) -> None:
    requested = urlencode(build_authorization_request(create_confidential_app(), client_id=None))
    assert parse_oauth_error(visitor.get(f"{PAGE}?{requested}&client_id=%ff%fe")) == (400, "invalid_client")


def test_a_state_of_undecodable_bytes_harms_nothing(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    requested = urlencode(build_authorization_request(create_confidential_app(), state=None))
    page = api.get(f"{PAGE}?{requested}&state=%ff%fe")
    assert page.status_code == 200


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"scope": "nonsense"}, "invalid_scope"),
        ({"scope": "read nonsense"}, "invalid_scope"),
        ({"scope": "READ"}, "invalid_scope"),
        ({"scope": "read,write"}, "invalid_scope"),
        ({"scope": "read " * 2000 + "nonsense"}, "invalid_scope"),
        ({"scope": "webhooks"}, "invalid_scope"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"code_challenge": CHALLENGE}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": CHALLENGE, "code_challenge_method": "s256"}, "invalid_request"),
        ({"code_challenge": None, "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": CHALLENGE[:-1], "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}=", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE}\n", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": f"{CHALLENGE[:-1]}+", "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "é" * 43, "code_challenge_method": "S256"}, "invalid_request"),
        ({"code_challenge": "a" * 5000, "code_challenge_method": "S256"}, "invalid_request"),
    ],
)
@pytest.mark.parametrize("kind", ["confidential", "public"])
def test_the_app_receives_all_other_errors(
    visitor: httpx.Client, changes: dict[str, str | None], error: str, kind: str
) -> None:
    """A challenge is optional for confidential apps, but it is checked if it is sent."""
    requested = {"code_challenge": None, "code_challenge_method": None, **changes}
    if kind == "public" and "code_challenge" not in changes:
        requested |= CHALLENGE_PARAMETERS
    application = create_confidential_app() if kind == "confidential" else create_public_app()
    response = visitor.get(PAGE, params=build_authorization_request(application, **requested))
    query = parse_redirect(response)
    query.pop("error_description", None)
    assert response.headers["Location"].startswith(f"{LOOPBACK if kind == 'public' else CALLBACK}?")
    assert query == {"error": error, "state": "from-the-app", "iss": ISSUER}
    assert urlsplit(response.headers["Location"]).fragment == ""


def test_a_public_app_must_send_a_challenge(visitor: httpx.Client) -> None:
    requested = build_authorization_request(create_public_app(), code_challenge=None, code_challenge_method=None)
    assert parse_redirect(visitor.get(PAGE, params=requested))["error"] == "invalid_request"


def test_an_error_has_no_state_where_the_request_had_none(visitor: httpx.Client) -> None:
    query = parse_redirect(
        visitor.get(PAGE, params=build_authorization_request(create_confidential_app(), scope="nonsense", state=None))
    )
    query.pop("error_description", None)
    assert query == {"error": "invalid_scope", "iss": ISSUER}


def test_an_error_is_added_to_the_query_of_the_redirect_uri(visitor: httpx.Client) -> None:
    shop = create_app("shop", "confidential", "https://a.example/one?shop=1", "read")
    requested = build_authorization_request(shop, redirect_uri="https://a.example/one?shop=1", scope="nonsense")
    query = parse_redirect(visitor.get(PAGE, params=requested))
    query.pop("error_description", None)
    assert query == {"shop": "1", "error": "invalid_scope", "state": "from-the-app", "iss": ISSUER}


def test_a_user_who_is_not_signed_in_is_led_to_sign_in_and_back(api: httpx.Client) -> None:
    requested = build_authorization_request(create_confidential_app(), state="a&b=c /?é")
    response = api.get(PAGE, params=requested)
    assert response.headers["Location"].startswith("/accounts/login?next=/oauth/authorize")
    next_address = parse_redirect(response)["next"]
    sign_in(api, create_reader())
    page = api.get(next_address)
    assert page.status_code == 200
    assert "Bookshop" in page.text


def test_a_deactivated_user_must_sign_in(api: httpx.Client) -> None:
    user = create_reader()
    sign_in(api, user)
    user.is_active = False
    user.save()
    response = api.get(PAGE, params=build_authorization_request(create_confidential_app()))
    assert response.headers["Location"].startswith("/accounts/login?next=")


@pytest.mark.parametrize("challenge", [{}, CHALLENGE_PARAMETERS])
@pytest.mark.parametrize("kind", ["confidential", "public"])
def test_consent_answers_code_state_and_issuer(api: httpx.Client, challenge: dict[str, str | None], kind: str) -> None:
    application = create_confidential_app() if kind == "confidential" else create_public_app()
    sign_in(api, create_librarian())
    response = submit_consent(api, build_authorization_request(application, **challenge))
    query = parse_redirect(response)
    assert query == {"code": query["code"], "state": "from-the-app", "iss": ISSUER}
    assert response.headers["Location"].startswith(f"{LOOPBACK if kind == 'public' else CALLBACK}?")
    assert response.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert response.text == ""


def test_codes_cannot_be_guessed_and_are_not_stored(api: httpx.Client) -> None:
    user, application = create_reader(), create_confidential_app()
    codes = {obtain_code(api, user, application) for _ in range(3)}
    assert len(codes) == 3
    assert min(map(len, codes)) >= 22
    assert codes.isdisjoint(Grant.objects.values_list("code", flat=True))


@pytest.mark.parametrize("state", ["s" * 5000, "a&b=c#d%20e+f ?/é", None])
def test_state_is_returned_unchanged(api: httpx.Client, state: str | None) -> None:
    sign_in(api, create_reader())
    query = parse_redirect(submit_consent(api, build_authorization_request(create_confidential_app(), state=state)))
    assert query.get("state") == state


@pytest.mark.parametrize("name", ["nonce", "claims", "resource", "login_hint", "user", "extra"])
@pytest.mark.parametrize("value", ["x" * 5000, "https://evil.example"])
def test_unknown_parameters_are_ignored(api: httpx.Client, name: str, value: str) -> None:
    """RFC 6749, 3.1."""
    sign_in(api, create_reader())
    assert parse_redirect(
        submit_consent(api, build_authorization_request(create_confidential_app(), **{name: value}))
    ).keys() == {"code", "state", "iss"}


def test_a_denial_is_reported_to_the_app(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    response = submit_consent(api, build_authorization_request(create_confidential_app()), allow=False)
    query = parse_redirect(response)
    query.pop("error_description", None)
    assert response.headers["Location"].startswith(f"{CALLBACK}?")
    assert query == {"error": "access_denied", "state": "from-the-app", "iss": ISSUER}
    assert not Grant.objects.exists()


@pytest.mark.parametrize("form", [{"allow": "yes"}, {"allow": "yes", "csrfmiddlewaretoken": "a" * 64}, {}])
def test_consent_without_the_csrf_token_is_refused(api: httpx.Client, form: dict[str, str]) -> None:
    requested = build_authorization_request(create_confidential_app())
    sign_in(api, create_reader())
    api.get(PAGE, params=requested)
    assert api.post(PAGE, params=requested, data=form).status_code == 403
    assert not Grant.objects.exists()


TAMPERED_FIELDS = {
    "client_id": "shelf",
    "redirect_uri": "https://evil.example/callback",
    "response_type": "token",
    "scope": "read write webhooks",
    "state": "of-the-attacker",
    "code_challenge": "a" * 43,
    "code_challenge_method": "plain",
    "response_mode": "fragment",
    "user": "1",
}


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize("names", [[name] for name in TAMPERED_FIELDS] + [list(TAMPERED_FIELDS)])
def test_other_fields_of_the_form_change_nothing(api: httpx.Client, allow: bool, names: list[str]) -> None:
    create_public_app()
    requested = build_authorization_request(create_confidential_app(), scope="read")
    sign_in(api, create_librarian())
    response = submit_consent(api, requested, allow, form={name: TAMPERED_FIELDS[name] for name in names})
    query = parse_redirect(response)
    assert response.headers["Location"].startswith(f"{CALLBACK}?")
    assert (query["state"], query["iss"], "code" in query, "error" in query) == (
        "from-the-app",
        ISSUER,
        allow,
        not allow,
    )
    assert list(Grant.objects.values_list("scope", "redirect_uri", "code_challenge", "application__client_id")) == (
        [("read", CALLBACK, "", "bookshop")] if allow else []
    )


def test_a_form_cannot_replace_the_challenge(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    submit_consent(api, build_authorization_request(create_public_app()), form={"code_challenge": "a" * 43})
    assert list(Grant.objects.values_list("code_challenge", "code_challenge_method")) == [(CHALLENGE, "S256")]


@pytest.mark.parametrize("allow", [True, False])
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"client_id": "nobody"}, "invalid_client"),
        ({"redirect_uri": "https://evil.example/callback"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"state": "a\0b"}, "invalid_request"),
    ],
)
def test_consent_is_validated_like_the_page(
    api: httpx.Client, allow: bool, changes: dict[str, str | None], error: str
) -> None:
    application = create_confidential_app()
    sign_in(api, create_reader())
    response = submit_consent(
        api,
        build_authorization_request(application),
        allow,
        submit_parameters=build_authorization_request(application, **changes),
    )
    assert parse_oauth_error(response) == (400, error)
    assert "Location" not in response.headers
    assert not Grant.objects.exists()


def test_nobody_consents_to_more_than_was_shown(api: httpx.Client) -> None:
    application = create_confidential_app(scopes="read")
    sign_in(api, create_librarian())
    page = read_hidden_fields(api.get(PAGE, params=build_authorization_request(application)).text)
    Allowance.objects.update(scopes="read write")
    api.post(PAGE, params=build_authorization_request(application), data={**page, "allow": "yes"})
    assert Grant.objects.get().scope == "read"


def test_a_consent_to_a_scope_that_the_app_may_not_have_is_refused(api: httpx.Client) -> None:
    application = create_confidential_app(scopes="read")
    sign_in(api, create_librarian())
    query = parse_redirect(
        submit_consent(
            api,
            build_authorization_request(application),
            submit_parameters=build_authorization_request(application, scope="write"),
        )
    )
    assert (query["error"], query["state"]) == ("invalid_scope", "from-the-app")


@pytest.mark.parametrize(
    "parameters", [{"approval_prompt": "auto"}, {"prompt": "none"}, {"prompt": "login"}, {"allow": "yes"}]
)
def test_no_app_waives_consent(api: httpx.Client, parameters: dict[str, str | None]) -> None:
    user, application = create_librarian(), create_confidential_app(skip_authorization=True)
    obtain_tokens(api, user, application)
    page = api.get(PAGE, params=build_authorization_request(application, **parameters))
    assert page.status_code == 200
    assert not Grant.objects.exists()


def test_the_page_names_the_app_and_the_scopes(api: httpx.Client) -> None:
    application = create_confidential_app()
    application.name = "<b>Books & Co</b>"
    application.save()
    sign_in(api, create_librarian())
    page = api.get(PAGE, params=build_authorization_request(application))
    assert "&lt;b&gt;Books &amp; Co&lt;/b&gt;" in page.text
    assert "<b>Books" not in page.text
    assert "Add, change and delete books" in page.text
    assert "Manage webhooks" not in page.text


def test_the_page_is_neither_framed_nor_cached(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    page = api.get(PAGE, params=build_authorization_request(create_confidential_app()))
    policy = dict(part.strip().partition(" ")[::2] for part in page.headers["Content-Security-Policy"].split(";"))
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert policy == {
        "default-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'self' https:",
        "frame-ancestors": "'none'",
    }


@pytest.mark.parametrize("requested", [{}, {"client_id": "nobody"}])
def test_no_response_is_cached(api: httpx.Client, requested: dict[str, str | None]) -> None:
    assert (
        "no-store"
        in api.get(PAGE, params=build_authorization_request(create_confidential_app(), **requested)).headers[
            "Cache-Control"
        ]
    )


@pytest.mark.parametrize(
    ("requested", "app_scopes", "make_user", "scopes"),
    [
        ("read write", "read write", create_librarian, "read write"),
        ("write read", "read write", create_librarian, "read write"),
        ("write", "read write", create_librarian, "write"),
        ("read", "read write", create_librarian, "read"),
        (None, "read write", create_librarian, "read"),
        ("", "read write", create_librarian, "read"),
        ("read write", "read", create_librarian, "read"),
        ("read write", "read write", create_reader, "read"),
        ("read write webhooks", "read write webhooks", create_librarian, "read write"),
        ("read write webhooks", "read write webhooks", create_superuser, "read write webhooks"),
        ("read write webhooks", "write", create_superuser, "write"),
    ],
)
def test_a_token_has_the_requested_scopes_that_app_and_user_may_have(
    api: httpx.Client, requested: str | None, app_scopes: str, make_user: Any, scopes: str
) -> None:
    application = create_confidential_app(scopes=app_scopes)
    assert obtain_tokens(api, make_user(), application, scope=requested)["scope"] == scopes


@pytest.mark.parametrize(
    ("requested", "app_scopes", "make_user"),
    [("write", "read write", create_reader), ("write", "read", create_librarian)],
)
def test_the_app_gets_an_error_where_no_scope_remains(
    api: httpx.Client, requested: str, app_scopes: str, make_user: Any
) -> None:
    application = create_confidential_app(scopes=app_scopes)
    sign_in(api, make_user())
    query = parse_redirect(api.get(PAGE, params=build_authorization_request(application, scope=requested)))
    assert query == {"error": "invalid_scope", "state": "from-the-app", "iss": ISSUER}


def test_an_app_without_an_allowance_may_read(api: httpx.Client) -> None:
    application = create_confidential_app()
    Allowance.objects.all().delete()
    application.refresh_from_db()
    assert obtain_tokens(api, create_librarian(), application)["scope"] == "read"


@pytest.mark.parametrize(
    ("age", "expected"),
    [(timedelta(minutes=9, seconds=30), (200, None)), (timedelta(minutes=10), (400, "code_expired"))],
)
def test_a_code_is_valid_for_ten_minutes(api: httpx.Client, age: timedelta, expected: tuple[int, str | None]) -> None:
    application = create_confidential_app()
    code = obtain_code(api, create_reader(), application)
    Grant.objects.update(expires=F("expires") - age)
    assert parse_oauth_error(api.post("/oauth/token", data=build_code_request(application, code))) == expected


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_are_not_allowed(api: httpx.Client, method: str) -> None:
    sign_in(api, create_reader())
    api.cookies.set("csrftoken", "a" * 32)
    parameters = build_authorization_request(create_confidential_app())
    for headers in ({"X-CSRFToken": "a" * 32}, {}):
        response = api.request(method, PAGE, params=parameters, headers=headers)
        assert (response.status_code, parse_allow(response)) == (405, {"GET", "HEAD", "OPTIONS", "POST"})
