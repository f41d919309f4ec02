"""/docs in a browser: it loads nothing from other hosts, under a strict Content-Security-Policy."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.server import Service


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_the_policy_allows_no_other_host(service: Service) -> None:
    with service.open_client() as client:
        policy = client.get("/docs").headers["Content-Security-Policy"]
    directives = dict(directive.split(" ", 1) for directive in policy.split("; "))
    assert directives["default-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"
    assert "script-src" not in directives
    assert "unsafe" not in policy


def test_a_request_of_version_2_goes_from_the_docs_to_the_address_of_the_page(service: Service, page: Page) -> None:
    """The servers of a document are those of PUBLIC_URL."""
    url = service.url.replace("127.0.0.1", "localhost")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    own = (url, "data:")
    page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    page.goto(f"{url}/docs")
    page.click("nav >> text=Version 2")
    page.click("#operations-Books-list_books .opblock-summary-control")
    page.click(".try-out__btn")
    page.fill("[data-param-name=q] input", "austen pride")
    page.click(".execute")
    address = page.text_content(".request-url pre")
    response = page.text_content(".live-responses-table .highlight-code")
    assert address is not None
    assert address.startswith(f"{url}/api/v2/books?")
    assert "q=austen%20pride" in address
    assert response is not None
    assert '"results": [' in response
    assert '"author": "Jane Austen"' in response
    assert '"updated_at"' in response
    assert problems == []


def test_the_curl_that_is_shown_holds_nothing_of_the_visitor(service: Service, page: Page) -> None:
    page.goto(f"{service.url}/docs/v1")
    page.click("#operations-Books-create_book .opblock-summary-control")
    page.click(".try-out__btn")
    with page.expect_request("**/api/books") as request:
        page.click(".execute")
    assert "csrf" not in str(request.value.headers).lower()
    assert "csrf" not in page.locator(".curl-command pre").inner_text().lower()
    assert page.context.cookies() == []
