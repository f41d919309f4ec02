"""Starts headless Chromium for tests of pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The pytest marks of a module of browser tests.
BROWSER_MARKS = [
    pytest.mark.database_independent,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not on this machine"),
]


@contextmanager
def start_chromium() -> Iterator[Browser]:
    """Yields a browser. Close it at the end of the module: while it runs, Django takes the thread
    for asynchronous code and refuses queries.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()
