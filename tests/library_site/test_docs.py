"""/docs in a browser: whole without any other host, under a strict Content-Security-Policy."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.serving import Service

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not on this machine"),
]


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_page()
        browser.close()


def test_a_request_can_be_made_from_the_docs(service: Service, page: Page) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: complaints.append(request.url) if not ours(request.url, service) else None)
    page.goto(f"{service.url}/docs")
    page.click("#operations-Books-list_books .opblock-summary-control")
    page.click(".try-out__btn")
    page.fill("[data-param-name=author] input", "austen")
    page.click(".execute")
    answer = page.text_content(".live-responses-table .highlight-code")
    assert answer is not None
    assert '"author": "Jane Austen"' in answer
    assert complaints == []


def ours(url: str, service: Service) -> bool:
    return url.startswith((service.url, "data:"))


def test_the_policy_lets_nothing_in_from_outside(service: Service) -> None:
    with service.client() as client:
        policy = client.get("/docs").headers["Content-Security-Policy"]
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"
    assert "script-src" not in directives
    assert "unsafe" not in policy
