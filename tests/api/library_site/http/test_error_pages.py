"""A person who meets an error gets a page, and a program gets JSON."""

import re
from typing import Any, NoReturn

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import NotSupportedError, OperationalError
from django.test import Client, RequestFactory

from library_site.http.api_errors import ErrorContent
from library_site.http.error_pages import EXPLANATIONS
from library_site.http.errors import CODES_BY_STATUS, render_content
from tests.support.failures import break_database
from tests.support.oauth_flows import read_hidden_fields

# What Chromium and Firefox send when a person opens a page.
BROWSER_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
INTERNAL_DETAIL = "could not reach 10.0.0.7"
AS_BROWSER = {"Accept": BROWSER_ACCEPT}


def read_title(response: Any) -> str:
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    match = re.search(r"<title>(.*) \| Library</title>", response.content.decode())
    assert match
    return match[1]


def test_an_unknown_address_is_a_page_for_a_browser_and_json_for_a_program(api: httpx.Client) -> None:
    for address in ("/nothing", "/docs/v9", "/accounts/nothing", "/admin/r/1/%00/", "/apiary", "/API"):
        response = api.get(address, headers=AS_BROWSER)
        assert (response.status_code, read_title(response)) == (404, "There is no such page"), address
        assert "Accept" in response.headers["Vary"]
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
        assert not re.search(r"<script|<style|\sstyle=", response.text)
    for accept in ("*/*", "application/json, text/html", "image/png,*/*;q=0.5", "application/json;v*=x'y'z"):
        for address in ("/nothing", "/admin/r/1/%00/"):
            response = api.get(address, headers={"Accept": accept})
            assert (response.status_code, response.json()) == (404, {"detail": "Not Found"}), accept
            assert "Accept" in response.headers["Vary"]


def test_an_address_for_programs_answers_json_to_a_browser_too(api: httpx.Client) -> None:
    for address in (
        "/api",
        "/api/v2/books/0",
        "/webhooks/nothing",
        "/openapi/v9.json",
        "/oauth/nothing",
        "/.well-known/x",
    ):
        response = api.get(address, headers=AS_BROWSER)
        assert (response.status_code, response.headers["Content-Type"]) == (404, "application/json"), address
        assert response.json()


def test_a_page_without_permission_is_explained(client: Client, db: None) -> None:
    client.force_login(User.objects.create_user("astrid", is_staff=True))
    response = client.get("/admin/auth/user/", headers=AS_BROWSER)
    assert (response.status_code, read_title(response)) == (403, "You may not do this")
    assert [f'class="{name}"' in response.content.decode() for name in ("bar", "languages")] == [True, True]
    assert client.get("/admin/auth/user/").json() == {"detail": "Forbidden"}


def test_a_form_that_is_too_large_is_explained(api: httpx.Client) -> None:
    """Of a form with a file, Django would leave out what is cut off."""
    form, text = read_hidden_fields(api.get("/accounts/login").text), "x" * 1024 * 1024
    for content in ({"data": {**form, "username": text}}, {"data": form, "files": {"file": text.encode()}}):
        response = api.post("/accounts/login", headers=AS_BROWSER, **content)
        assert (response.status_code, read_title(response)) == (413, "That is too much at once")


def test_an_unknown_host_is_explained(api: httpx.Client) -> None:
    response = api.get("/admin/", headers={"Host": "evil.example", **AS_BROWSER})
    assert (response.status_code, read_title(response)) == (400, "The library cannot read this request")


def test_a_database_out_of_reach_is_explained(api: httpx.Client) -> None:
    with break_database(OperationalError(INTERNAL_DETAIL)):
        response = api.get("/accounts/apps?page=2", headers={"Cookie": "sessionid=" + "a" * 32, **AS_BROWSER})
    assert (response.status_code, read_title(response)) == (503, "The library is out of reach")
    assert response.headers["Retry-After"] == "1"
    assert 'href="/accounts/apps?page=2">Try again' in response.text


@pytest.mark.parametrize("error", [OSError, NotSupportedError])
def test_a_failure_shows_the_number_of_the_request_and_nothing_internal(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error(INTERNAL_DETAIL)

    monkeypatch.setattr("django.contrib.auth.forms.AuthenticationForm.__init__", fail)
    response = api.get("/accounts/login", headers=AS_BROWSER)
    assert (response.status_code, read_title(response)) == (500, "The library failed")
    assert response.headers["X-Request-ID"] in response.text
    assert INTERNAL_DETAIL not in response.text


def test_an_app_that_cannot_be_let_in_is_explained(api: httpx.Client) -> None:
    cases = [
        ("nobody", "Invalid client_id parameter value.", "The library does not know this app."),
        ("a\0b", "A parameter has a NUL character.", "with a request that the library refuses."),
    ]
    for client_id, reason, advice in cases:
        page = api.get("/oauth/authorize", params={"client_id": client_id}, headers=AS_BROWSER)
        assert (page.status_code, read_title(page)) == (400, "This app cannot be let in")
        assert (reason in page.text, advice in page.text) == (True, True)
        response = api.get("/oauth/authorize", params={"client_id": client_id})
        assert (response.status_code, response.json()["error_description"]) == (400, reason)


def test_each_error_has_words_of_its_own() -> None:
    request = RequestFactory().get("/admin/books/book/", headers=AS_BROWSER)
    for status in CODES_BY_STATUS.keys() | EXPLANATIONS.keys():
        explanation = EXPLANATIONS.get(status, EXPLANATIONS[400])
        response = render_content(request, ErrorContent(status, "It is <taken>", headers={"X-Reason": "taken"}))
        assert (response.status_code, read_title(response)) == (status, explanation.title)
        assert response.headers["X-Reason"] == "taken"
        is_shown = explanation in (EXPLANATIONS[400], EXPLANATIONS[409])
        assert ("It is &lt;taken&gt;" in response.content.decode()) == is_shown, status
