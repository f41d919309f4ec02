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
    INVALID_REQUEST,
    LOOPBACK,
    SECRET,
    build_authorization_request,
    build_code_request,
    create_app,
    create_confidential_app,
    create_librarian,
    create_reader,
    obtain_code,
    obtain_tokens,
    parse_oauth_error,
    parse_redirect,
    post_consent,
    read_hidden_fields,
    sign_in,
    submit_consent,
)
from tests.support.responses import parse_allow

PAGE = "/oauth/authorize"
ISSUER = settings.PUBLIC_URL
UNKNOWN_CLIENT = (400, "invalid_client")
UNSUPPORTED_TYPE = (400, "unsupported_response_type")


def open_page(client: httpx.Client, application: Application, **changes: str | None) -> httpx.Response:
    return client.get(PAGE, params=build_authorization_request(application, **changes))


def parse_error_redirect(response: httpx.Response) -> dict[str, str]:
    """Returns what the app receives, without the description for people."""
    query = parse_redirect(response)
    query.pop("error_description", None)
    return query


@pytest.mark.parametrize("is_signed_in", [True, False])
def test_a_wrong_client_or_response_type_is_answered_without_a_redirect(
    api: httpx.Client, bookshop: Application, is_signed_in: bool
) -> None:
    """The other rules of a request are tested before the sign-in: the same function checks it after that."""
    if is_signed_in:
        sign_in(api, create_librarian())
    errors: list[tuple[dict[str, str | None], tuple[int, str]]] = [
        ({"client_id": None}, UNKNOWN_CLIENT),
        ({"client_id": "BOOKSHOP"}, UNKNOWN_CLIENT),
        ({"client_id": "é" * 5000}, UNKNOWN_CLIENT),
        ({"response_type": None}, UNSUPPORTED_TYPE),
        ({"response_type": "token"}, UNSUPPORTED_TYPE),
        ({"client_id": "nobody", "response_type": "token", "redirect_uri": "https://evil.example/"}, UNKNOWN_CLIENT),
        ({"redirect_uri": "https://evil.example/", "response_type": "token"}, INVALID_REQUEST),
    ]
    for changes, error in errors:
        response = open_page(api, bookshop, **changes)
        assert (parse_oauth_error(response), "Location" in response.headers) == (error, False), changes
    response = open_page(api, bookshop, response_mode="fragment")
    assert parse_error_redirect(response) == {"error": "invalid_request", "state": "from-the-app", "iss": ISSUER}


def test_a_registered_address_is_redirected_to(api: httpx.Client) -> None:
    shelf = create_app("shelf", "public", "", "read", client_secret="")
    sign_in(api, create_reader())
    for registered, requested in (
        ("http://127.0.0.1:8000/callback", "http://127.0.0.1:51004/callback"),
        ("http://[::1]/callback", "http://[::1]:51004/callback"),
        ("http://localhost:3000/callback", "http://localhost:3000/callback"),
        ("https://a.example/one https://a.example/two", "https://a.example/two"),
        ("https://a.example/one?shop=1", "https://a.example/one?shop=1"),
    ):
        Application.objects.filter(pk=shelf.pk).update(redirect_uris=registered)
        response = post_consent(api, build_authorization_request(shelf, redirect_uri=requested))
        assert parse_redirect(response).keys() - {"shop"} == {"code", "state", "iss"}, requested
        assert response.headers["Location"].startswith(requested)


def test_nobody_is_sent_to_an_address_that_the_app_has_not_registered(api: httpx.Client) -> None:
    """Only the port of a loopback address is free."""
    shelf = create_app("shelf", "public", "", "read", client_secret="")
    for registered, requested in (
        ("http://127.0.0.1/callback", "http://127.0.0.1:51004/elsewhere"),
        ("http://127.0.0.1/callback", "https://127.0.0.1:51004/callback"),
        ("http://127.0.0.1/callback", "http://localhost:51004/callback"),
        ("http://127.0.0.1/callback", "http://[::1]:51004/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1:80@evil.example/callback"),
        ("http://127.0.0.1/callback", "http://127.0.0.1.evil.example/callback"),
        ("http://localhost:3000/callback", "http://localhost:3001/callback"),
        ("http://192.0.2.1/callback", "http://192.0.2.1:3000/callback"),
        ("https://a.example/one?shop=1", "https://a.example/one"),
        (CALLBACK, "https://evil.example/callback"),
        (CALLBACK, f"{CALLBACK}/"),
        (CALLBACK, f"{CALLBACK}?next=https://evil.example"),
        (CALLBACK, f"{CALLBACK}\r\nSet-Cookie: a=b"),
        (CALLBACK, "https://[app.example/callback"),
    ):
        Application.objects.filter(pk=shelf.pk).update(redirect_uris=registered)
        response = open_page(api, shelf, redirect_uri=requested)
        assert (parse_oauth_error(response), "Location" in response.headers) == (INVALID_REQUEST, False), requested


def test_the_redirect_uri_may_be_omitted_where_the_app_has_one(api: httpx.Client, bookshop: Application) -> None:
    two = create_app("two", "confidential", "https://a.example/one https://a.example/two", "read")
    sign_in(api, create_reader())
    response = post_consent(api, build_authorization_request(bookshop, redirect_uri=None))
    assert response.headers["Location"].startswith(f"{CALLBACK}?code=")
    assert parse_oauth_error(open_page(api, two, redirect_uri=None)) == INVALID_REQUEST


def test_repeated_parameters_and_nul_are_refused(api: httpx.Client, shelf: Application) -> None:
    requested = build_authorization_request(shelf)
    assert len(requested) == 7
    for name in requested:
        repeated = api.get(f"{PAGE}?{urlencode([*requested.items(), (name, requested[name])])}")
        with_nul = open_page(api, shelf, **{name: "a\0b"})
        assert [parse_oauth_error(response) for response in (repeated, with_nul)] == [INVALID_REQUEST] * 2, name
        assert "Location" not in repeated.headers
    assert parse_oauth_error(open_page(api, shelf, nonce="a\0b")) == INVALID_REQUEST


def test_undecodable_bytes_name_no_client_and_harm_nothing_as_state(api: httpx.Client, bookshop: Application) -> None:
    sign_in(api, create_reader())
    without_client, without_state = (
        urlencode(build_authorization_request(bookshop, **{name: None})) for name in ("client_id", "state")
    )
    assert parse_oauth_error(api.get(f"{PAGE}?{without_client}&client_id=%ff%fe")) == UNKNOWN_CLIENT
    assert api.get(f"{PAGE}?{without_state}&state=%ff%fe").status_code == 200


def test_the_app_receives_all_other_errors(api: httpx.Client, bookshop: Application, shelf: Application) -> None:
    """A challenge is optional for confidential apps, but it is checked if it is sent."""
    valid = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
    cases: list[tuple[Application, dict[str, str | None], str]] = [
        (bookshop, {"scope": "read nonsense"}, "invalid_scope"),
        (shelf, {"scope": "webhooks"}, "invalid_scope"),
        (bookshop, {**valid, "code_challenge_method": None}, "invalid_request"),
        (bookshop, {**valid, "code_challenge_method": "plain"}, "invalid_request"),
        (bookshop, {**valid, "code_challenge": None}, "invalid_request"),
        (bookshop, {**valid, "code_challenge": CHALLENGE[:-1]}, "invalid_request"),
        (bookshop, {**valid, "code_challenge": f"{CHALLENGE}\n"}, "invalid_request"),
        (bookshop, {**valid, "code_challenge": "é" * 43}, "invalid_request"),
        (shelf, {"code_challenge_method": None}, "invalid_request"),
        (shelf, {"code_challenge": None}, "invalid_request"),
        (shelf, {"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
    ]
    for app, changes, error in cases:
        response = open_page(api, app, **changes)
        location, query = response.headers["Location"], parse_error_redirect(response)
        assert location.startswith(f"{CALLBACK if app is bookshop else LOOPBACK}?"), changes
        assert query == {"error": error, "state": "from-the-app", "iss": ISSUER}, changes
        assert urlsplit(location).fragment == ""


def test_the_query_of_a_redirect_uri_is_kept_byte_for_byte(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    shop = create_app("shop", "confidential", CALLBACK, "read", client_secret=SECRET)
    iss = urlencode({"iss": ISSUER})
    for query in ("flag", "code=1&state=2", "a%20b&empty=&&a=%E9;b&~!$'()*,/?:@&a+b=%2b"):
        uri = f"https://a.example/one?{query}"
        Application.objects.filter(pk=shop.pk).update(redirect_uris=uri)
        valid = build_authorization_request(shop, redirect_uri=uri, scope="read", state="s")
        redirects = {
            "code=": submit_consent(api, valid),
            "error=access_denied&": submit_consent(api, valid, allow=False),
            "error=invalid_scope&": api.get(PAGE, params={**valid, "scope": "nonsense"}),
        }
        locations = {start: response.headers["Location"] for start, response in redirects.items()}
        for start, location in locations.items():
            assert (location.startswith(f"{uri}&{start}"), location.endswith(f"&state=s&{iss}")) == (True, True), (
                location
            )
        code = locations["code="].removeprefix(f"{uri}&code=").partition("&")[0]
        form = build_code_request(shop, code, redirect_uri=uri)
        assert api.post("/oauth/token", data=form).status_code == 200


def test_a_user_who_is_not_signed_in_is_led_to_sign_in_and_back(api: httpx.Client, bookshop: Application) -> None:
    response = open_page(api, bookshop, state="a&b=c /?é")
    assert response.headers["Location"].startswith("/accounts/login?next=/oauth/authorize")
    next_address = parse_redirect(response)["next"]
    sign_in(api, create_reader())
    page = api.get(next_address)
    assert (page.status_code, "Bookshop" in page.text) == (200, True)
    User.objects.update(is_active=False)
    assert api.get(next_address).headers["Location"].startswith("/accounts/login?next=")


def test_consent_answers_code_state_and_issuer(api: httpx.Client, app: Application) -> None:
    sign_in(api, create_librarian())
    response = submit_consent(api, build_authorization_request(app))
    query = parse_redirect(response)
    assert query == {"code": query["code"], "state": "from-the-app", "iss": ISSUER}
    assert response.headers["Location"].startswith(f"{LOOPBACK if app.client_type == 'public' else CALLBACK}?")
    assert response.headers["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
    assert response.text == ""


def test_codes_cannot_be_guessed_and_are_not_stored(api: httpx.Client, bookshop: Application) -> None:
    user = create_reader()
    codes = {obtain_code(api, user, bookshop) for _ in range(3)}
    assert len(codes) == 3
    assert min(map(len, codes)) >= 22
    assert codes.isdisjoint(Grant.objects.values_list("code", flat=True))


def test_state_is_returned_unchanged_and_unknown_parameters_are_ignored(
    api: httpx.Client, bookshop: Application
) -> None:
    """RFC 6749, 3.1."""
    sign_in(api, create_reader())
    unknown = {"nonce": "x" * 5000, "resource": "https://evil.example", "user": "1"}
    for state in ("s" * 5000, "a&b=c#d%20e+f ?/é", None):
        query = parse_redirect(post_consent(api, build_authorization_request(bookshop, state=state, **unknown)))
        assert (query.pop("state", None), set(query)) == (state, {"code", "iss"})


def test_consent_without_the_csrf_token_is_refused(api: httpx.Client, bookshop: Application) -> None:
    sign_in(api, create_reader())
    open_page(api, bookshop)
    for form in ({"allow": "yes"}, {"allow": "yes", "csrfmiddlewaretoken": "a" * 64}):
        assert api.post(PAGE, params=build_authorization_request(bookshop), data=form).status_code == 403
    assert not Grant.objects.exists()


@pytest.mark.parametrize("allow", [True, False])
def test_other_fields_of_the_form_change_nothing(api: httpx.Client, shelf: Application, allow: bool) -> None:
    sign_in(api, create_librarian())
    create_confidential_app()
    form = {
        "client_id": "bookshop",
        "redirect_uri": "https://evil.example/callback",
        "response_type": "token",
        "scope": "read write webhooks",
        "state": "of-the-attacker",
        "code_challenge": "a" * 43,
        "code_challenge_method": "plain",
        "response_mode": "fragment",
        "user": "1",
    }
    response = submit_consent(api, build_authorization_request(shelf, scope="read"), allow, form=form)
    query = parse_error_redirect(response)
    code = {"code": query["code"]} if allow else {"error": "access_denied"}
    assert response.headers["Location"].startswith(f"{LOOPBACK}?")
    assert query == {**code, "state": "from-the-app", "iss": ISSUER}
    grants = Grant.objects.values_list("scope", "redirect_uri", "code_challenge", "application__client_id")
    assert list(grants) == ([("read", LOOPBACK, CHALLENGE, "shelf")] if allow else [])


@pytest.mark.parametrize("allow", [True, False])
def test_consent_is_validated_like_the_page(api: httpx.Client, bookshop: Application, allow: bool) -> None:
    sign_in(api, create_reader())
    errors = {
        ("redirect_uri", "https://evil.example/callback"): INVALID_REQUEST,
        ("state", "a\0b"): INVALID_REQUEST,
    }
    for change, error in errors.items():
        changed = build_authorization_request(bookshop, **dict([change]))
        response = submit_consent(api, build_authorization_request(bookshop), allow, submit_parameters=changed)
        assert (parse_oauth_error(response), "Location" in response.headers) == (error, False)
    assert not Grant.objects.exists()


def test_nobody_consents_to_more_than_was_shown(api: httpx.Client) -> None:
    application = create_confidential_app(scopes="read")
    sign_in(api, create_librarian())
    page = read_hidden_fields(open_page(api, application).text)
    Allowance.objects.update(scopes="read write")
    api.post(PAGE, params=build_authorization_request(application), data={**page, "allow": "yes"})
    assert Grant.objects.get().scope == "read"


def test_no_app_waives_consent(api: httpx.Client, librarian: User) -> None:
    application = create_confidential_app(skip_authorization=True)
    obtain_tokens(api, librarian, application)
    for name, value in (("approval_prompt", "auto"), ("prompt", "none"), ("prompt", "login"), ("allow", "yes")):
        assert open_page(api, application, **{name: value}).status_code == 200
    assert not Grant.objects.exists()


def test_a_token_has_the_requested_scopes_that_app_and_user_may_have(api: httpx.Client, db: None) -> None:
    """The app receives an error where none remains."""
    all_scopes, librarian, reader = "read write webhooks", create_librarian(), create_reader()
    director = User.objects.create(username="director", is_superuser=True)
    for number, (requested, app_scopes, user, scopes) in enumerate(
        (
            ("write read", "read write", librarian, "read write"),
            (None, "read write", librarian, "read"),
            ("read write", "read", librarian, "read"),
            ("read write", "read write", reader, "read"),
            (all_scopes, all_scopes, librarian, "read write"),
            (all_scopes, all_scopes, director, all_scopes),
            (all_scopes, "write", director, "write"),
        )
    ):
        application = create_confidential_app(f"shop-{number}", scopes=app_scopes)
        assert obtain_tokens(api, user, application, scope=requested)["scope"] == scopes, (requested, app_scopes)
    Allowance.objects.all().delete()
    # Without an allowance an app may read.
    assert obtain_tokens(api, librarian, Application.objects.get(client_id="shop-0"))["scope"] == "read"
    for client_id, user in (("shop-0", reader), ("shop-2", librarian)):
        sign_in(api, user)
        query = parse_redirect(open_page(api, Application.objects.get(client_id=client_id), scope="write"))
        assert query == {"error": "invalid_scope", "state": "from-the-app", "iss": ISSUER}


def test_a_code_is_valid_for_ten_minutes(api: httpx.Client, bookshop: Application) -> None:
    """Another app does not learn that it has expired."""
    user, reseller = create_reader(), create_confidential_app("reseller")

    def redeem(application: Application, age: timedelta) -> Any:
        code = obtain_code(api, user, bookshop)
        Grant.objects.update(expires=F("expires") - age)
        return parse_oauth_error(api.post("/oauth/token", data=build_code_request(application, code)))

    assert redeem(bookshop, timedelta(minutes=9, seconds=30)) == (200, None)
    assert redeem(bookshop, timedelta(minutes=10)) == (400, "code_expired")
    assert redeem(reseller, timedelta(minutes=10)) == (400, "invalid_grant")


def test_other_methods_are_not_allowed(api: httpx.Client, bookshop: Application) -> None:
    sign_in(api, create_reader())
    api.cookies.set("csrftoken", "a" * 32)
    for method, headers in (("PUT", {}), ("PATCH", {"X-CSRFToken": "a" * 32}), ("DELETE", {})):
        response = api.request(method, PAGE, params=build_authorization_request(bookshop), headers=headers)
        assert (response.status_code, parse_allow(response)) == (405, {"GET", "HEAD", "OPTIONS", "POST"})
