"""Starts headless Chromium for tests of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.server import Service

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Otherwise other renderers are kept ready beside that of each context.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=1",
    # No page lives as long as it takes to optimize its code.
    "--js-flags=--no-opt --always-sparkplug",
    # A camera that shows a test picture.
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
]


@contextmanager
def start_chromium(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
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
    unexpected = [error for error in errors if not ignored or not error.startswith(ignored)]
    assert not unexpected, unexpected
