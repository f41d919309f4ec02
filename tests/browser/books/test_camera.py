"""The camera as a scanner, in a browser that can read bar codes: what it reads goes the way of what is typed.

Chromium has no detector on Linux. A stand-in finds what the test puts before the camera, which is Chromium's own fake.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import open_page
from tests.support.server import Service, run_in_shell
from tests.support.waiting import wait_until

PREPARATION = """
import json
from django.db import transaction
from tests.support.admin_pages import create_session
from tests.support.books_admin import create_book

with transaction.atomic():
    books = [create_book(title=f"Seen {number}", isbn=f"97801430390{end}") for number, end in enumerate(("09", "16"))]
print(json.dumps([create_session("kalle", "Librarians"), *[book.isbn for book in books]]))
"""
DETECTOR = """
    window.inView = '';
    window.BarcodeDetector = class {
        static async getSupportedFormats() { return FORMATS; }
        constructor({formats}) { this.formats = formats; }
        async detect(video) {
            window.looks = (window.looks || 0) + 1;
            if (!video.videoWidth || this.formats[0] !== 'ean_13') { return []; }
            return window.inView ? [{rawValue: window.inView}] : [];
        }
    };
"""
CAN_READ = DETECTOR.replace("FORMATS", "['qr_code', 'ean_13']")
PAGES = ["/admin/", "/admin/books/book/scan/", "/admin/books/book/lend/", "/admin/books/book/add/"]


@pytest.fixture(scope="module")
def prepared(service: Service) -> list[str]:
    """The session of a librarian, and the ISBNs of two books that are available."""
    values: list[str] = json.loads(run_in_shell(service.database_url, PREPARATION))
    return values


@contextmanager
def open_camera(
    browser: Browser, service: Service, session: str, address: str, script: str = "", **options: Any
) -> Iterator[Page]:
    """Opens a page in a browser that can read codes, and its camera."""
    with open_page(browser, service, session, **options) as page:
        page.add_init_script(CAN_READ)
        page.add_init_script(script)
        page.goto(address)
        page.get_by_role("button", name="Camera").click()
        yield page


def show_code(page: Page, code: str) -> None:
    page.evaluate("code => { window.inView = code; }", code)


@pytest.mark.parametrize(
    ("detector", "addresses"),
    [("delete window.BarcodeDetector;", PAGES), (DETECTOR.replace("FORMATS", "['qr_code']"), PAGES[:1])],
    ids=["no detector", "one of other codes"],
)
def test_where_no_code_can_be_read_there_is_no_button(
    browser: Browser, service: Service, prepared: list[str], detector: str, addresses: list[str]
) -> None:
    with open_page(browser, service, prepared[0]) as page:
        page.add_init_script(detector)
        for address in addresses:
            page.goto(address)
            page.wait_for_load_state("networkidle")
            expect(page.locator("[data-camera]")).to_have_count(1)
            expect(page.get_by_role("button", name="Camera")).to_have_count(0)


@pytest.mark.parametrize("address", PAGES[:2])
def test_a_code_before_the_camera_finds_a_book(
    browser: Browser, service: Service, prepared: list[str], address: str
) -> None:
    screen = {"width": 390, "height": 800}
    with open_camera(browser, service, prepared[0], address, viewport=screen) as page:
        show_code(page, prepared[1])
        expect(page.get_by_role("heading", level=1)).to_have_text("Seen 0")
        assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_code_before_the_camera_begins_a_new_book(browser: Browser, service: Service, prepared: list[str]) -> None:
    with open_camera(browser, service, prepared[0], "/admin/books/book/add/") as page:
        show_code(page, "9780143039471")
        expect(page.locator("#id_title")).to_be_focused()
        expect(page.locator("#id_isbn")).to_have_value("978-0-14-303947-1")
        expect(page.get_by_role("dialog")).to_be_hidden()
        wait_until(lambda: page.evaluate("document.querySelector('#camera video').srcObject === null"))


def test_codes_before_the_camera_lend_one_book_after_the_other(
    browser: Browser, service: Service, prepared: list[str]
) -> None:
    with open_camera(browser, service, prepared[0], "/admin/books/book/lend/") as page:
        for code in prepared[1:]:
            show_code(page, code)
            expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(code)
        rows = page.locator("#lending-rows [data-outcome=changed]")
        expect(rows).to_have_count(2)
        # It is still in view: no other scan, and no word about one.
        looks = page.evaluate("window.looks")
        wait_until(lambda: page.evaluate("window.looks") > looks + 3)
        assert page.locator("#lending-rows > li").count() == 2
        expect(page.locator("#content-main")).not_to_contain_text("ignored")
        page.get_by_role("button", name="Close").click()
        wait_until(lambda: page.evaluate("document.querySelector('#camera video').srcObject === null"))
    states = service.fetch_all("SELECT available FROM books_book WHERE title IN ('Seen 0', 'Seen 1')")
    assert [bool(available) for (available,) in states] == [False, False]


def test_a_camera_that_is_not_allowed_is_said(browser: Browser, service: Service, prepared: list[str]) -> None:
    refusal = "navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException());"
    with open_camera(browser, service, prepared[0], "/admin/books/book/scan/", refusal) as page:
        expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("The browser gives no picture")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
