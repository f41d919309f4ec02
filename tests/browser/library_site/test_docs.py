"""/docs in a browser: it loads nothing from other hosts, under a strict Content-Security-Policy."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support.server import Service

# The lowest contrast of the words of code, after the formula of WCAG 2.
CONTRAST_SCRIPT = """elements => {
  const luminance = (color) => color.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  return Math.min(...elements.map((element) => {
    const [dark, light] = [getComputedStyle(element).color, getComputedStyle(element.closest("pre")).backgroundColor]
      .map(luminance).sort((one, other) => one - other);
    return (light + 0.05) / (dark + 0.05);
  }));
}"""
NAMELESS_SCRIPT = "fields => fields.filter(one => !one.labels.length && !one.ariaLabel).map(one => one.outerHTML)"


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
    """The servers of a document are those of PUBLIC_URL. What is answered can be read, and its form has names."""
    url = service.url.replace("127.0.0.1", "localhost")
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    own = (url, "data:")
    page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
    page.goto(f"{url}/docs/v2")
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
    code = page.locator(".live-responses-table pre code span, .curl-command pre span")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        assert code.evaluate_all(CONTRAST_SCRIPT) >= 4.5
    assert page.locator(".swagger-ui :is(select, input, textarea)").evaluate_all(NAMELESS_SCRIPT) == []
    assert page.locator(".live-responses-table pre:not([tabindex='0'])").count() == 0
    assert page.context.cookies() == []
    assert problems == []
