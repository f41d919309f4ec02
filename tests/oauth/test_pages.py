"""People's pages: signing in and out, and the apps they let in."""

import re
from datetime import timedelta
from html import unescape

import httpx
import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.formats import date_format
from oauth2_provider.models import Application

from oauth.models import Authorization
from tests.support.oauth_flows import (
    CALLBACK,
    app,
    code_for,
    confidential_app,
    hidden,
    librarian,
    public_app,
    reader,
    redemption,
    refreshing,
    request_for,
    sign_in,
    tokens_for,
)

PASSWORD = "correct horse battery staple"
PAGES = ["/accounts/login", "/accounts/logout", "/accounts/apps", "/oauth/authorize"]


def person(name: str = "reader") -> User:
    return User.objects.create_user(name, password=PASSWORD)


def submit(client: httpx.Client, path: str, /, shown_at: str | None = None, **form: str) -> httpx.Response:
    """Sends a page's form, with the token that it has."""
    return client.post(path, data={**hidden(client.get(shown_at or path).text), **form})


def try_to_sign_in(client: httpx.Client, path: str = "/accounts/login", password: str = PASSWORD) -> httpx.Response:
    return submit(client, path, username="reader", password=password)


def end_access(client: httpx.Client, client_id: str) -> httpx.Response:
    return submit(client, "/accounts/apps", shown_at="/accounts/logout", app=client_id)


def let_in(user: User, application: Application, scopes: str = "read", days_ago: int = 0) -> Authorization:
    created_at = timezone.now() - timedelta(days=days_ago)
    return Authorization.objects.create(user=user, application=application, scopes=scopes, created_at=created_at)


def words(page: httpx.Response) -> str:
    """What a page says, without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page.text.partition("<body>")[2])).split())


def sources(page: httpx.Response) -> dict[str, str]:
    directives = page.headers["Content-Security-Policy"].split("; ")
    return dict(directive.split(" ", 1) for directive in directives)


def test_who_signs_in_sees_their_apps(api: httpx.Client) -> None:
    person()
    answer = try_to_sign_in(api)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/apps")
    assert "You are signed in as reader." in words(api.get("/accounts/apps"))


def test_who_signs_in_goes_on_to_where_they_wanted(api: httpx.Client) -> None:
    person()
    assert try_to_sign_in(api, "/accounts/login?next=/admin/books/").headers["Location"] == "/admin/books/"


def test_a_page_for_people_who_are_signed_in_leads_to_sign_in_and_back(api: httpx.Client) -> None:
    assert api.get("/accounts/apps").headers["Location"] == "/accounts/login?next=/accounts/apps"


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "/accounts/login"],
)
@pytest.mark.parametrize("signed_in", [True, False])
def test_nobody_is_led_elsewhere_or_in_circles(api: httpx.Client, elsewhere: str, signed_in: bool) -> None:
    user, path = person(), str(httpx.URL("/accounts/login", params={"next": elsewhere}))
    if signed_in:
        sign_in(api, user)
    answer = api.get(path) if signed_in else try_to_sign_in(api, path)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/accounts/apps")


def test_who_is_signed_in_need_not_sign_in(api: httpx.Client) -> None:
    sign_in(api, reader())
    assert api.get("/accounts/login?next=/admin/").headers["Location"] == "/admin/"


def test_a_wrong_password_is_said_beside_the_fields(api: httpx.Client) -> None:
    person()
    page = try_to_sign_in(api, password="wrong")
    assert page.status_code == 200
    assert "Please enter a correct username and password." in words(page)
    assert "<title>Error: Sign in | Library</title>" in page.text
    assert 'id="problem" role="alert"' in page.text
    assert page.text.count('aria-invalid="true" aria-describedby="problem"') == 2
    assert 'value="reader"' in page.text
    assert "wrong" not in page.text


@pytest.mark.parametrize("username", ["a\0b", "x" * 151, "", "<b>"])
def test_a_strange_username_is_refused(api: httpx.Client, username: str) -> None:
    page = submit(api, "/accounts/login", username=username, password="wrong")
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert "<b>" not in page.text


@pytest.mark.parametrize("path", ["/accounts/login?next=/accounts/apps", "/admin/login/"])
def test_after_five_failures_a_person_waits(api: httpx.Client, path: str) -> None:
    person()
    failures = [try_to_sign_in(api, path, "wrong") for _ in range(5)]
    assert [failure.status_code for failure in failures] == [200, 200, 200, 200, 429]
    page = try_to_sign_in(api, path)
    assert (page.status_code, page.headers["Retry-After"]) == (429, "300")
    assert "Too many failed attempts" in words(page)
    assert "Wait 5 minutes" in words(page)
    assert "no-store" in page.headers["Cache-Control"]
    assert f'href="{path}"' in page.text


def test_sign_in_says_which_app_asks(api: httpx.Client) -> None:
    confidential_app()
    page = api.get("/accounts/login?next=/oauth/authorize%3Fclient_id%3Dbookshop")
    assert "Bookshop asks to be let into the library." in words(page)


@pytest.mark.parametrize("asked", ["%3Fclient_id%3Dnobody", "%3Fclient_id%3D%2500", ""])
def test_sign_in_does_without_an_app(api: httpx.Client, asked: str) -> None:
    page = api.get(f"/accounts/login?next=/oauth/authorize{asked}")
    assert page.status_code == 200
    assert "asks" not in words(page)
    assert sources(page)["form-action"] == "'self'"


@pytest.mark.parametrize(
    ("redirect_uri", "source"),
    [
        (CALLBACK, "https:"),
        ("https://app.example:8443/callback", "https:"),
        ("http://127.0.0.1/callback", "https: http://127.0.0.1:*"),
        ("http://[::1]/callback", "https: http:"),
    ],
)
def test_forms_may_end_where_the_app_leads(api: httpx.Client, redirect_uri: str, source: str) -> None:
    application = app("shelf", "confidential", redirect_uri, "read")
    asked = httpx.URL("/oauth/authorize", params=request_for(application, redirect_uri=redirect_uri))
    signing_in = api.get(api.get(asked).headers["Location"])
    sign_in(api, reader())
    assert sources(signing_in)["form-action"] == sources(api.get(asked))["form-action"] == f"'self' {source}"


def test_signing_out_is_asked_first(api: httpx.Client) -> None:
    sign_in(api, reader())
    assert "Sign out? You are signed in as reader." in words(api.get("/accounts/logout"))
    assert api.get("/accounts/apps").status_code == 200


def test_who_signs_out_is_signed_out(api: httpx.Client) -> None:
    sign_in(api, reader())
    assert "You are signed out" in words(submit(api, "/accounts/logout"))
    assert api.get("/accounts/apps").status_code == 302
    assert "You are signed out" in words(api.get("/accounts/logout"))


def test_another_account_can_be_used_for_an_app(api: httpx.Client) -> None:
    sign_in(api, reader())
    asked = str(httpx.URL("/oauth/authorize", params=request_for(confidential_app())))
    switch = re.search(r'action="(/accounts/logout[^"]+)"', api.get(asked).text)
    assert switch
    signed_out = submit(api, unescape(switch[1]), shown_at=asked)
    assert signed_out.headers["Location"] == asked
    assert api.get(asked).headers["Location"].startswith("/accounts/login?next=/oauth/authorize%3F")


def test_consent_says_who_asks_whom_for_what_and_what_comes_then(api: httpx.Client) -> None:
    sign_in(api, librarian())
    said = words(api.get("/oauth/authorize", params=request_for(confidential_app())))
    assert "Let Bookshop into the library?" in said
    assert "Signed in as librarian" in said
    assert "it will be able to Read the library's books Add, change and delete books Either way" in said
    assert "you will be sent on to https://app.example." in said


@pytest.mark.parametrize("path", ["/oauth/authorize", "/accounts/apps"])
def test_the_name_of_an_app_is_only_text(api: httpx.Client, path: str) -> None:
    user, application = reader(), confidential_app()
    Application.objects.filter(pk=application.pk).update(name="<script>" + "x" * 240)
    let_in(user, application)
    sign_in(api, user)
    page = api.get(path, params=request_for(application))
    assert "<script" not in page.text
    assert f"<bdi>&lt;script&gt;{'x' * 71}…</bdi>" in page.text


def test_who_let_no_app_in_is_told_what_would_be_here(api: httpx.Client) -> None:
    sign_in(api, reader())
    assert "No apps yet" in words(api.get("/accounts/apps"))


def test_each_app_is_listed_with_what_it_may_since_when_and_its_last_use(api: httpx.Client) -> None:
    user, bookshop = librarian(), confidential_app()
    since = let_in(user, bookshop, days_ago=60).created_at
    used_at = let_in(user, bookshop, "write", days_ago=30).created_at
    let_in(user, public_app())
    sign_in(api, user)
    said = words(api.get("/accounts/apps"))
    granted = "Read the library's books Add, change and delete books"
    assert f"Bookshop {granted} Let in {date_format(since)} Last renewed {date_format(used_at)} End access" in said
    assert "Shelf Read the library's books Let in" in said
    assert "No apps yet" not in said


def test_an_app_that_is_over_is_not_listed(api: httpx.Client) -> None:
    user = reader()
    let_in(user, confidential_app(), days_ago=91)
    sign_in(api, user)
    assert "No apps yet" in words(api.get("/accounts/apps"))


def test_whose_access_is_ended_gets_no_more_tokens(api: httpx.Client) -> None:
    user, application = librarian(), confidential_app()
    refresh_token = tokens_for(api, user, application)["refresh_token"]
    assert end_access(api, "bookshop").headers["Location"] == "/accounts/apps"
    said = words(api.get("/accounts/apps"))
    assert "Bookshop has no access any more." in said
    assert "No apps yet" in said
    answer = api.post("/oauth/token", data=refreshing(application, refresh_token))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_a_code_under_way_ends_with_the_access(api: httpx.Client) -> None:
    application = confidential_app()
    code = code_for(api, librarian(), application)
    end_access(api, "bookshop")
    answer = api.post("/oauth/token", data=redemption(application, code))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_what_others_let_in_stays(api: httpx.Client) -> None:
    granted = let_in(librarian(), confidential_app())
    sign_in(api, reader())
    end_access(api, "bookshop")
    granted.refresh_from_db()
    assert granted.ended_at is None


@pytest.mark.parametrize("client_id", ["", "nobody", "a\0b"])
def test_an_app_that_there_is_not_cannot_be_ended(api: httpx.Client, client_id: str) -> None:
    sign_in(api, reader())
    assert end_access(api, client_id).headers["Location"] == "/accounts/apps"
    assert "no access any more" not in words(api.get("/accounts/apps"))


@pytest.mark.parametrize("signed_in", [True, False])
@pytest.mark.parametrize("path", PAGES)
def test_pages_are_kept_by_nobody_and_framed_by_nobody(api: httpx.Client, path: str, signed_in: bool) -> None:
    if signed_in:
        sign_in(api, reader())
    page = api.get(path, params=request_for(confidential_app()))
    assert "no-store" in page.headers["Cache-Control"]
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert sources(page)["default-src"] == "'self'"
    assert sources(page)["frame-ancestors"] == "'none'"
    assert "unsafe" not in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", PAGES)
def test_pages_need_no_script_or_style_of_their_own(api: httpx.Client, path: str) -> None:
    if path != "/accounts/login":
        sign_in(api, reader())
    page = api.get(path, params=request_for(confidential_app()))
    assert '<html lang="en-us">' in page.text
    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=", page.text)


def test_a_form_that_is_out_of_date_is_said_to_be(api: httpx.Client) -> None:
    page = api.post("/accounts/login?next=/docs", data={"username": "reader", "password": PASSWORD})
    assert page.status_code == 403
    assert "This page is out of date" in words(page)
    assert 'href="/accounts/login?next=/docs"' in page.text
