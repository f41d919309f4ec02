"""Headless Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# The marks of a module of browser tests.
BROWSER_MARKS = [
    pytest.mark.once,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not on this machine"),
]


@contextmanager
def start_chromium() -> Iterator[Browser]:
    """For one module at a time: while it runs, Django takes the thread for one of asynchronous code."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()
