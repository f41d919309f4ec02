"""The browser of all tests in this folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import start_chromium


@pytest.fixture(scope="package", autouse=True)
def browser(chromium: str) -> Iterator[Browser]:
    """One headless Chromium. While it runs, Django takes the thread for asynchronous code and refuses queries."""
    # What a page waits for is a worker, too, which has to share the processor.
    expect.set_options(timeout=30_000)
    with start_chromium(chromium) as browser:
        yield browser
