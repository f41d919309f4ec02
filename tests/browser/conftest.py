"""The browser of all tests in this folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import start_chromium
from tests.support.server import Service, serve_library


@pytest.fixture(scope="package", autouse=True)
def browser(chromium: str) -> Iterator[Browser]:
    """One headless Chromium. While it runs, Django takes the thread for asynchronous code and refuses queries."""
    # What a page waits for is a worker, too, which has to share the processor.
    expect.set_options(timeout=30_000)
    with start_chromium(chromium) as browser:
        yield browser


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A served library without the books of clients, which are duplicates of each other."""
    with serve_library(tmp_path_factory.mktemp("browser"), WEB_THREADS="40") as service:
        yield service
