"""Starts headless Chromium for tests of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.server import Service

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The pytest marks of a module of browser tests.
BROWSER_MARKS = [pytest.mark.database_independent, pytest.mark.browser, pytest.mark.usefixtures("chromium")]


@contextmanager
def start_chromium(path: str, *flags: str) -> Iterator[Browser]:
    """Yields a browser. Close it at the end of the module: while it runs, Django takes the thread
    for asynchronous code and refuses queries.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS, *flags])
        yield browser
        browser.close()


@contextmanager
def open_page(
    browser: Browser, service: Service, session: str | None = None, ignored: str = "", **options: Any
) -> Iterator[Page]:
    """Opens a page in a new browser context; checks that nothing violates the policy or fails.

    Errors that begin with the text `ignored` may happen.
    """
    context = browser.new_context(base_url=service.url, **options)
    errors: list[str] = []
    context.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda web_error: errors.append(str(web_error.error)))
    if session:
        context.add_cookies([{"name": "sessionid", "value": session, "url": service.url}])
    yield context.new_page()
    context.close()
    assert [error for error in errors if not ignored or not error.startswith(ignored)] == []
