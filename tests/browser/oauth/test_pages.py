"""People's pages in a browser, and the Authorize button of /docs."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page

from tests.support.browser import open_page
from tests.support.oauth_flows import CHALLENGE_PARAMETERS
from tests.support.second_factors import compute_code
from tests.support.server import Service, run_in_shell

PASSWORD = "correct horse battery staple"
# Creates three users, an app with a short name and one with a long name, and a session for each user.
PREPARATION = f"""
import json
from django.contrib.auth.models import User
from django.utils import timezone
from httpx import Client
from oauth.models import Authorization
from tests.support.oauth_flows import create_librarian, create_public_app, sign_in

margaret = create_librarian("margaret")
margaret.set_password({PASSWORD!r})
margaret.save()
newcomer = User.objects.create_user("newcomer", password={PASSWORD!r})
phoneless = User.objects.create_user("phoneless", password={PASSWORD!r})
create_public_app("bindery")
overlong = create_public_app("overlong")
overlong.name = "Ж" * 255
overlong.save()
Authorization.objects.create(user=margaret, application=overlong, scopes="read write", created_at=timezone.now())
sessions = {{}}
for person in (margaret, newcomer, phoneless):
    client = Client()
    sign_in(client, person)
    sessions[person.username] = client.cookies["sessionid"]
print(json.dumps(sessions))
"""
HEIGHTS_SCRIPT = "elements => elements.map(element => element.getBoundingClientRect().height)"
LIGHTNESS_SCRIPT = "Math.max(...getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g))"


@pytest.fixture(scope="module")
def sessions(service: Service) -> dict[str, str]:
    """The session keys of the signed-in users, by user name."""
    session_keys: dict[str, str] = json.loads(run_in_shell(service.database_url, PREPARATION))
    return session_keys


@pytest.fixture(scope="module")
def callback() -> Iterator[str]:
    """The redirect URI of an app that listens on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), CallbackHandler) as app:
        Thread(target=app.serve_forever).start()
        yield f"http://127.0.0.1:{app.server_port}/callback"
        app.shutdown()


class CallbackHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"Welcome back")

    def log_message(self, *arguments: Any) -> None:
        """Writes nothing: the log does not belong in the output of tests."""


def build_authorization_path(callback: str, scope: str = "read write", client_id: str = "bindery") -> str:
    parameters = {"client_id": client_id, "redirect_uri": callback, "scope": scope, "state": "from-the-app"}
    return f"/oauth/authorize?{urlencode({**parameters, 'response_type': 'code', **CHALLENGE_PARAMETERS})}"


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Username").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def read_redirect(page: Page, callback: str) -> dict[str, list[str]]:
    page.wait_for_url(f"{callback}?*")
    return parse_qs(urlsplit(page.url).query)


def test_a_user_signs_in_and_allows_an_app_without_javascript(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str
) -> None:
    with open_page(browser, service, java_script_enabled=False) as page:
        page.goto(build_authorization_path(callback))
        sign_in(page, "margaret", "a wrong one")
        assert "The username or the password is wrong." in page.get_by_role("alert").inner_text()
        sign_in(page, "margaret")
        page.get_by_role("button", name="Allow").click()
        query = read_redirect(page, callback)
    assert query["state"] == ["from-the-app"]
    assert query["code"]


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (1280, "light")])
def test_pages_fit_the_screen_and_the_scheme(
    browser: Browser, service: Service, sessions: dict[str, str], callback: str, width: int, scheme: Any
) -> None:
    pages = ("apps", "logout", "profile", "password", "two-factor", "password/forgotten")
    addresses = [*(f"/accounts/{page}" for page in pages), build_authorization_path(callback, client_id="overlong")]
    screen = {"width": width, "height": 640}
    with open_page(browser, service, sessions["margaret"], viewport=screen, color_scheme=scheme) as page:
        for address in addresses:
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert all(height >= 44 for height in page.locator("a, button").evaluate_all(HEIGHTS_SCRIPT))
            assert page.evaluate(LIGHTNESS_SCRIPT) < 60 if scheme == "dark" else page.evaluate(LIGHTNESS_SCRIPT) > 200


def test_a_user_sets_a_phone_up_and_signs_in_with_it_by_the_keyboard(
    browser: Browser, service: Service, sessions: dict[str, str]
) -> None:
    with open_page(browser, service, sessions["phoneless"], java_script_enabled=False) as page:
        page.goto("/accounts/two-factor")
        secret = (page.locator("code").text_content() or "").replace(" ", "")
        assert page.evaluate("scrollY") == 0
        page.get_by_label("Code from your app").focus()
        type_and_submit(page, compute_code(secret, timezone.now()), PASSWORD)
        assert page.get_by_role("status").inner_text() == "Two-factor sign-in is on."
        recovery_codes = page.locator(".codes code").all_inner_texts()
        page.context.clear_cookies()
        page.goto("/accounts/login")
        sign_in(page, "phoneless")
        page.locator("[name=code]:focus").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        type_and_submit(page, recovery_codes[0])
        assert page.title() == "Apps with access | Library"
    assert len(recovery_codes) == 10


def type_and_submit(page: Page, *texts: str) -> None:
    """Types the texts into the focused field and those after it, as without a mouse."""
    page.locator("input:focus").wait_for()
    page.keyboard.type(texts[0])
    for text in texts[1:]:
        page.keyboard.press("Tab")
        page.keyboard.type(text)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def test_try_it_out_sends_the_token_of_authorize_and_nothing_of_the_visitor(
    browser: Browser, service: Service, sessions: dict[str, str]
) -> None:
    with open_page(browser, service, sessions["margaret"]) as page:
        page.goto("/docs/v1")
        page.click(".btn.authorize")
        flow = page.locator(".auth-container", has_text="authorizationCode")
        with page.expect_popup() as popup, page.expect_response("**/oauth/token") as token_response:
            flow.get_by_role("button", name="Authorize", exact=True).click()
            popup.value.get_by_role("button", name="Allow").click()
        token = token_response.value.json()
        flow.get_by_role("button", name="Close").click()
        page.click("#operations-Books-create_book .opblock-summary-control")
        page.click(".try-out__btn")
        with page.expect_response("**/api/books") as api_response:
            page.click(".execute")
        curl = page.locator(".curl-command pre").inner_text()
        cookies = {str(cookie.get("name")) for cookie in page.context.cookies()}
    headers = api_response.value.request.headers
    assert token["scope"] == "read write"
    assert headers["authorization"] == f"Bearer {token['access_token']}"
    assert api_response.value.status == 201
    assert {"csrftoken", "sessionid"} <= cookies
    assert "csrf" not in f"{headers} {curl}".lower()


def test_a_user_ends_the_access_of_an_app_and_signs_out(
    browser: Browser, service: Service, sessions: dict[str, str]
) -> None:
    with open_page(browser, service, sessions["margaret"]) as page:
        page.goto("/accounts/apps")
        page.get_by_role("button", name="End access Ж").click()
        assert "has no access any more" in page.get_by_role("status").inner_text()
        assert page.get_by_role("button", name="End access Ж").count() == 0
        page.locator(".bar-person summary").click()
        page.get_by_role("button", name="Sign out").click()
        assert page.get_by_role("heading").inner_text() == "You are signed out"
        page.goto("/accounts/apps")
        assert page.title() == "Sign in | Library"
