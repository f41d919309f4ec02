"""The pages of users: sign-in, sign-out, and the apps to which they gave access."""

import re
from datetime import timedelta
from html import unescape

import httpx
import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.formats import date_format
from oauth2_provider.models import Application

from oauth.models import Authorization
from tests.support.account_pages import PASSWORD, read_text, submit
from tests.support.oauth_flows import (
    CALLBACK,
    INVALID_GRANT,
    build_authorization_request,
    build_code_request,
    build_refresh_request,
    create_app,
    create_confidential_app,
    create_librarian,
    create_public_app,
    create_reader,
    obtain_code,
    obtain_tokens,
    parse_oauth_error,
    post_form,
    sign_in,
    submit_sign_in,
)

PAGES = [
    "/accounts/login", "/accounts/logout", "/accounts/apps", "/accounts/profile", "/accounts/password",
    "/accounts/password/forgotten", "/accounts/password/sent", "/accounts/password/new", "/accounts/password/set",
    "/accounts/two-factor", "/oauth/authorize",
]  # fmt: skip


def create_user(name: str = "reader") -> User:
    return User.objects.create_user(name, password=PASSWORD)


def try_to_sign_in(client: httpx.Client, path: str = "/accounts/login", password: str = PASSWORD) -> httpx.Response:
    return submit_sign_in(client, "reader", password, path)


def end_access(client: httpx.Client, client_id: str) -> httpx.Response:
    return post_form(client, "/accounts/apps", {"app": client_id})


def authorize_app(user: User, application: Application, scopes: str = "read", days_ago: int = 0) -> Authorization:
    created_at = timezone.now() - timedelta(days=days_ago)
    return Authorization.objects.create(user=user, application=application, scopes=scopes, created_at=created_at)


def parse_policy(page: httpx.Response) -> dict[str, str]:
    """Returns the directives of the Content-Security-Policy."""
    directives = page.headers["Content-Security-Policy"].split("; ")
    return dict(directive.split(" ", 1) for directive in directives)


def test_a_user_who_signs_in_sees_their_apps_or_the_requested_page(api: httpx.Client) -> None:
    user = create_user()
    assert api.get("/accounts/apps").headers["Location"] == "/accounts/login?next=/accounts/apps"
    response = try_to_sign_in(api)
    assert (response.status_code, response.headers["Location"]) == (302, "/accounts/apps")
    assert "You are signed in as reader." in read_text(api.get("/accounts/apps"))
    api.cookies.clear()
    assert try_to_sign_in(api, "/accounts/login?next=/admin/books/").headers["Location"] == "/admin/books/"
    sign_in(api, user)
    assert api.get("/accounts/login?next=/admin/").headers["Location"] == "/admin/"


@pytest.mark.parametrize("path", ["/accounts/login?next=/accounts/apps", "/admin/login/"])
def test_the_page_of_a_lockout_says_how_long_to_wait(api: httpx.Client, path: str) -> None:
    try_to_sign_in(api, path, "wrong")
    AccessAttempt.objects.update(failures_since_start=4)
    page = try_to_sign_in(api, path, "wrong")
    assert (page.status_code, page.headers["Retry-After"]) == (429, "300")
    assert "Too many failed attempts" in read_text(page)
    assert "Wait 5 minutes" in read_text(page)
    assert "no-store" in page.headers["Cache-Control"]
    assert f'href="{path}"' in page.text


def test_sign_in_leads_to_no_other_site_and_not_to_itself(api: httpx.Client) -> None:
    user = create_user()
    for target in (
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "/accounts/login",
    ):
        api.cookies.clear()
        path = str(httpx.URL("/accounts/login", params={"next": target}))
        assert try_to_sign_in(api, path).headers["Location"] == "/accounts/apps", target
    sign_in(api, user)
    assert api.get(path).headers["Location"] == "/accounts/apps"
    assert api.get("/accounts/login?next=//evil.example/").headers["Location"] == "/accounts/apps"


def test_a_wrong_password_is_reported_at_the_fields(api: httpx.Client) -> None:
    create_user()
    page = try_to_sign_in(api, password="secret-guess")
    assert page.status_code == 200
    assert "The username or the password is wrong." in read_text(page)
    assert "<title>Error: Sign in | Library</title>" in page.text
    assert 'id="problem" role="alert"' in page.text
    assert page.text.count('aria-invalid="true" aria-describedby="problem"') == 2
    assert 'value="reader"' in page.text
    assert "secret-guess" not in page.text
    for username in ("a\0b", "x" * 151, "", "<b>"):
        page = submit_sign_in(api, username, "wrong")
        assert (page.status_code, 'role="alert"' in page.text, "<b>" in page.text) == (200, True, False), username


def test_sign_in_names_the_app_if_there_is_one(api: httpx.Client) -> None:
    create_confidential_app()
    for client_id, is_named in (("bookshop", True), ("nobody", False), ("%2500", False), ("", False)):
        page = api.get(f"/accounts/login?next=/oauth/authorize%3Fclient_id%3D{client_id}")
        assert page.status_code == 200
        assert ("Bookshop asks to be let into the library." in read_text(page)) is is_named, client_id
    assert parse_policy(page)["form-action"] == "'self'"


def test_forms_may_redirect_to_the_app(api: httpx.Client) -> None:
    reader = create_reader()
    for client_id, redirect_uri, source in (
        ("shop", "https://app.example:8443/callback", "https:"),
        ("shelf", "http://127.0.0.1/callback", "https: http://127.0.0.1:*"),
        ("six", "http://[::1]/callback", "https: http:"),
    ):
        app = create_app(client_id, "confidential", redirect_uri, "read")
        request = build_authorization_request(app, redirect_uri=redirect_uri)
        api.cookies.clear()
        pages = [api.get(api.get("/oauth/authorize", params=request).headers["Location"])]
        sign_in(api, reader)
        pages.append(api.get("/oauth/authorize", params=request))
        assert [parse_policy(page)["form-action"] for page in pages] == [f"'self' {source}"] * 2


def test_a_user_can_sign_out_after_a_confirmation(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    assert "Sign out? You are signed in as reader." in read_text(api.get("/accounts/logout"))
    assert api.get("/accounts/apps").status_code == 200
    assert "You are signed out" in read_text(submit(api, "/accounts/logout"))
    assert api.get("/accounts/apps").status_code == 302
    assert "You are signed out" in read_text(api.get("/accounts/logout"))


def test_another_account_can_be_used_for_an_app(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    consent_path = str(httpx.URL("/oauth/authorize", params=build_authorization_request(create_confidential_app())))
    match = re.search(r'action="(/accounts/logout[^"]+)"', api.get(consent_path).text)
    assert match
    signed_out = submit(api, unescape(match[1]), form_path=consent_path)
    assert signed_out.headers["Location"] == consent_path
    assert api.get(consent_path).headers["Location"].startswith("/accounts/login?next=/oauth/authorize%3F")


def test_the_consent_page_names_the_app_the_user_the_scopes_and_the_next_address(api: httpx.Client) -> None:
    sign_in(api, create_librarian())
    text = read_text(api.get("/oauth/authorize", params=build_authorization_request(create_confidential_app())))
    assert "Let Bookshop into the library?" in text
    assert "Signed in as librarian" in text
    assert "it will be able to Read the library's books Add, change and delete books The app can do nothing" in text
    assert "that you may not do yourself. Either way you will be sent on to https://app.example." in text


def test_the_consent_page_names_the_scopes_that_are_left_out_and_why(api: httpx.Client) -> None:
    sign_in(api, create_reader())
    application = create_app("shelf", "confidential", CALLBACK, "read write")
    request = build_authorization_request(application, scope="read write webhooks")
    text = read_text(api.get("/oauth/authorize", params=request))
    assert "it will be able to Read the library's books The app can do nothing that you may not do yourself." in text
    assert "yourself. It also asked for, and will not get Add, change" in text
    assert "Add, change and delete books: your account may not do that" in text
    assert "Manage webhooks and read events: the library does not allow it to this app" in text


@pytest.mark.parametrize("path", ["/oauth/authorize", "/accounts/apps"])
def test_the_name_of_an_app_is_only_text(api: httpx.Client, path: str) -> None:
    user, application = create_reader(), create_confidential_app()
    Application.objects.filter(pk=application.pk).update(name="<script>" + "x" * 240)
    authorize_app(user, application)
    sign_in(api, user)
    page = api.get(path, params=build_authorization_request(application))
    assert "<script>" not in page.text
    assert f"<bdi>&lt;script&gt;{'x' * 71}…</bdi>" in page.text


def test_each_app_is_listed_with_its_scopes_its_start_and_its_last_use(api: httpx.Client) -> None:
    user, bookshop = create_librarian(), create_confidential_app()
    created_at = authorize_app(user, bookshop, days_ago=60).created_at
    used_at = authorize_app(user, bookshop, "write", days_ago=30).created_at
    authorize_app(user, create_public_app())
    sign_in(api, user)
    text = read_text(api.get("/accounts/apps"))
    scope_texts = "Read the library's books Add, change and delete books"
    since, used = date_format(created_at, "j M Y"), date_format(used_at, "j M Y")
    assert f"Bookshop {scope_texts} Let in {since} Last renewed {used} End access" in text
    assert "Shelf Read the library's books Let in" in text
    assert "No apps yet" not in text


def test_an_app_whose_access_is_ended_gets_no_more_tokens(api: httpx.Client, bookshop: Application) -> None:
    user = create_librarian()
    refresh_token = obtain_tokens(api, user, bookshop)["refresh_token"]
    unused_code = obtain_code(api, user, bookshop)
    assert end_access(api, "bookshop").headers["Location"] == "/accounts/apps"
    text = read_text(api.get("/accounts/apps"))
    assert "Bookshop has no access any more." in text
    assert "No apps yet" in text
    for form in (build_refresh_request(bookshop, refresh_token), build_code_request(bookshop, unused_code)):
        assert parse_oauth_error(api.post("/oauth/token", data=form)) == INVALID_GRANT


def test_a_user_ends_only_an_access_of_their_own(api: httpx.Client, bookshop: Application) -> None:
    authorization = authorize_app(create_librarian(), bookshop)
    reader = create_reader()
    authorize_app(reader, bookshop, days_ago=91)
    sign_in(api, reader)
    for client_id in ("", "nobody", "a\0b"):
        assert end_access(api, client_id).headers["Location"] == "/accounts/apps"
        text = read_text(api.get("/accounts/apps"))
        assert ("no access any more" in text, "No apps yet" in text) == (False, True)
    end_access(api, "bookshop")
    authorization.refresh_from_db()
    assert authorization.ended_at is None


@pytest.mark.parametrize("is_signed_in", [True, False])
def test_pages_are_neither_cached_nor_framed_and_have_no_inline_script_or_style(
    api: httpx.Client, bookshop: Application, is_signed_in: bool
) -> None:
    if is_signed_in:
        sign_in(api, create_reader())
    for path in PAGES:
        page = api.get(path, params=build_authorization_request(bookshop))
        assert "no-store" in page.headers["Cache-Control"], path
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Referrer-Policy"] == "same-origin"
        assert parse_policy(page)["default-src"] == "'self'"
        assert parse_policy(page)["frame-ancestors"] == "'none'"
        assert "unsafe" not in page.headers["Content-Security-Policy"]
        assert page.status_code == 302 or '<html lang="en">' in page.text, path
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=", page.text), path


def test_an_outdated_form_gets_an_explanation(api: httpx.Client) -> None:
    page = api.post("/accounts/login?next=/docs", data={"username": "reader", "password": PASSWORD})
    assert page.status_code == 403
    assert "This page is out of date" in read_text(page)
    assert 'href="/accounts/login?next=/docs"' in page.text
