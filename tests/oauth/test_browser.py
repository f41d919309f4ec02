"""People's pages in a browser, and the Authorize button of /docs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browser import BROWSER_MARKS, start_chromium
from tests.support.oauth_flows import CHALLENGED
from tests.support.serving import Service

PASSWORD = "correct horse battery staple"
# Two people, an app of each kind of name, and a session for each of the people.
SCENE = f"""
import json
from django.contrib.auth.models import User
from django.utils import timezone
from httpx import Client
from oauth.models import Authorization
from tests.support.oauth_flows import librarian, public_app, sign_in

margaret = librarian("margaret")
margaret.set_password({PASSWORD!r})
margaret.save()
newcomer = User.objects.create_user("newcomer", password={PASSWORD!r})
public_app("bindery")
overlong = public_app("overlong")
overlong.name = "Ж" * 255
overlong.save()
Authorization.objects.create(user=margaret, application=overlong, scopes="read write", created_at=timezone.now())
sessions = {{}}
for person in (margaret, newcomer):
    client = Client()
    sign_in(client, person)
    sessions[person.username] = client.cookies["sessionid"]
print(json.dumps(sessions))
"""
HEIGHTS = "elements => elements.map(element => element.getBoundingClientRect().height)"
LIGHTNESS = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g))"

pytestmark = BROWSER_MARKS


@pytest.fixture(scope="module")
def sessions(service: Service) -> dict[str, str]:
    """The session keys of those who are signed in."""
    command = [sys.executable, "manage.py", "shell", "-v0", "-c", SCENE]
    environment = os.environ | {"DATABASE_URL": service.database_url}
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with start_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def callback() -> Iterator[str]:
    """The address at which an app waits for people to come back."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Welcome) as app:
        Thread(target=app.serve_forever).start()
        yield f"http://127.0.0.1:{app.server_port}/callback"
        app.shutdown()


class Welcome(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Welcome back")

    def log_message(self, *arguments: Any) -> None:
        """Nobody reads it."""


@contextmanager
def opened(browser: Browser, service: Service, session: str | None = None, **options: Any) -> Iterator[Page]:
    """A page of a fresh browser, in which nothing may break the Content-Security-Policy or fail."""
    context = browser.new_context(base_url=service.url, **options)
    complaints: list[str] = []
    context.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda failed: complaints.append(str(failed.error)))
    if session:
        context.add_cookies([{"name": "sessionid", "value": session, "url": service.url}])
    yield context.new_page()
    context.close()
    assert complaints == []


def asking(callback: str, scope: str = "read write", client_id: str = "bindery") -> str:
    asked = {"client_id": client_id, "redirect_uri": callback, "scope": scope, "state": "from-the-app"}
    return f"/oauth/authorize?{urlencode({**asked, 'response_type': 'code', **CHALLENGED})}"


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def told(page: Page, callback: str) -> dict[str, list[str]]:
    page.wait_for_url(f"{callback}?*")
    return parse_qs(urlsplit(page.url).query)


def test_a_person_signs_in_and_lets_an_app_in_without_javascript(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str
) -> None:
    with opened(browser, service, java_script_enabled=False) as page:
        page.goto(asking(callback))
        sign_in(page, "margaret", "a wrong one")
        assert "correct username and password" in page.get_by_role("alert").inner_text()
        sign_in(page, "margaret")
        page.get_by_role("button", name="Allow").click()
        query = told(page, callback)
    assert query["state"] == ["from-the-app"]
    assert query["code"]


def test_who_denies_goes_back_to_the_app(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str
) -> None:
    with opened(browser, service, sessions["margaret"]) as page:
        page.goto(asking(callback))
        page.get_by_role("button", name="Deny").click()
        query = told(page, callback)
    assert (query["error"], query["state"]) == (["access_denied"], ["from-the-app"])


def test_an_app_is_told_when_who_signed_in_may_nothing_of_what_it_asks(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str
) -> None:
    with opened(browser, service) as page:
        page.goto(asking(callback, scope="write"))
        sign_in(page, "newcomer")
        assert told(page, callback)["error"] == ["invalid_scope"]


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (320, "dark"), (1280, "dark")])
def test_pages_fit_the_screen_and_the_scheme(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str, width: int, scheme: Any
) -> None:
    addresses = ["/accounts/apps", "/accounts/logout", asking(callback, client_id="overlong")]
    screen = {"width": width, "height": 640}
    with opened(browser, service, sessions["margaret"], viewport=screen, color_scheme=scheme) as page:
        for address in addresses:
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert all(height >= 44 for height in page.locator("a, button").evaluate_all(HEIGHTS))
            assert page.evaluate(LIGHTNESS) < 60 if scheme == "dark" else page.evaluate(LIGHTNESS) > 200


def test_try_it_out_sends_the_token_that_authorize_got(
    browser: Browser, service: Service, sessions: dict[str, str]
) -> None:
    with opened(browser, service, sessions["margaret"]) as page:
        page.goto("/docs/v1")
        page.click(".btn.authorize")
        flow = page.locator(".auth-container", has_text="authorizationCode")
        with page.expect_popup() as popup, page.expect_response("**/oauth/token") as answered:
            flow.get_by_role("button", name="Apply given OAuth2 credentials").click()
            popup.value.get_by_role("button", name="Allow").click()
        token = answered.value.json()
        flow.get_by_role("button", name="Close").click()
        page.click("#operations-Books-list_books .opblock-summary-control")
        page.click(".try-out__btn")
        with page.expect_response("**/api/books?*") as tried:
            page.click(".execute")
    assert token["scope"] == "read write"
    assert tried.value.request.headers["authorization"] == f"Bearer {token['access_token']}"
    assert tried.value.status == 200


def test_a_person_ends_the_access_of_an_app_and_signs_out(
    browser: Browser, service: Service, sessions: dict[str, str]
) -> None:
    with opened(browser, service, sessions["margaret"]) as page:
        page.goto("/accounts/apps")
        page.get_by_role("button", name="End access Ж").click()
        assert "has no access any more" in page.get_by_role("status").inner_text()
        assert page.get_by_role("button", name="End access Ж").count() == 0
        page.get_by_role("link", name="Sign out").click()
        page.get_by_role("button", name="Sign out").click()
        assert page.get_by_role("heading").inner_text() == "You are signed out"
        page.goto("/accounts/apps")
        assert page.title() == "Sign in | Library"
