"""The versions in /docs, in a browser."""

from playwright.sync_api import sync_playwright

from tests.library_site.test_docs import CHROMIUM, QUIET, pytestmark  # noqa: F401  # skips where there is no browser
from tests.serving import Service


def test_a_request_of_version_2_can_be_made_from_the_docs(service: Service) -> None:
    complaints: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{service.url}/docs")
        page.click("nav >> text=Version 2")
        page.click("#operations-Books-list_books .opblock-summary-control")
        page.click(".try-out__btn")
        page.fill("[data-param-name=q] input", "austen pride")
        page.click(".execute")
        address = page.text_content(".request-url pre")
        answer = page.text_content(".live-responses-table .highlight-code")
        browser.close()
    assert address is not None
    assert address.startswith(f"{service.url}/api/v2/books?")
    assert "q=austen%20pride" in address
    assert answer is not None
    assert '"results": [' in answer
    assert '"author": "Jane Austen"' in answer
    assert '"updated_at"' in answer
    assert complaints == []
