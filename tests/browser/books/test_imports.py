"""A librarian's whole import in a browser: a file with faults, mended from what came back, imported and undone."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.books import build_isbn
from tests.support.browser import open_page
from tests.support.forked_commands import ForkedProcess
from tests.support.server import Service, run_in_shell
from tests.support.waiting import PROCESS_TIMEOUT

# Creates a head librarian and two books, and prints the session.
PREPARATION = """
from django.db import transaction
from tests.support.admin_pages import create_session
from tests.support.books_admin import create_book

with transaction.atomic():
    create_book(isbn="in-use")
    create_book(isbn="978-0-14-143951-8")
print(create_session("selma", "Head librarians"))
"""
HEADER = "Titel;Verfasser;Jahr;ISBN;Sachgebiet;Verfügbar"
# Valid ISBNs that no book of the service has.
ISBNS = [build_isbn(2_000_000 + number) for number in range(50)]
MENDED = ISBNS[39:]
# Eleven kinds of faults: the rows, and the field and the text that mend each. A row that cannot be read has none.
FAULTS = {
    f";Zoë;1900;{MENDED[0]};Lyrik;": ("title", "Café A"),
    f"Café B; ;1900;{MENDED[1]};Lyrik;": ("author", "Zoë"),
    f"Café C;Zoë;MCM;{MENDED[2]};Lyrik;": ("year", "1900"),
    f"Café D;Zoë;99999999999;{MENDED[3]};Lyrik;": ("year", "1999"),
    f"{'é' * 1001};Zoë;1900;{MENDED[4]};Lyrik;": ("title", "Café E"),
    f"Café F;Zoë;1900;{'6' * 65};Lyrik;": ("isbn", MENDED[5]),
    f"Café G;Zoë;1900;{MENDED[7]};Lyrik;vielleicht": ("available", "lent"),
    f"Café H;Zoë;1900;{ISBNS[1]};Lyrik;": ("isbn", MENDED[8]),
    "Café I;Zoë;1900;in-use;Lyrik;": ("isbn", MENDED[9]),
    "Café J;Zoë;1900;0141439513;Lyrik;": ("isbn", MENDED[10]),
}
UNREADABLE, MISREAD = "Café K;Zoë;1900", f"Café L;Zoë;1900;{ISBNS[0][:-1]}x;Lyrik;"
FINE_ROWS = [f"Übermut {number};Zoë;1900;{isbn};Lyrik;" for number, isbn in enumerate(ISBNS[:39])]


@pytest.fixture
def session(service: Service) -> str:
    return run_in_shell(service.database_url, PREPARATION).strip()


@pytest.fixture
def worker(service: Service, tmp_path: Path) -> Iterator[None]:
    """A worker of operations."""
    with (tmp_path / "log").open("w") as log:
        environment = os.environ | {"DATABASE_URL": service.database_url}
        process = ForkedProcess(environment, "run_operations", output=log.fileno(), errors=log.fileno())
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(PROCESS_TIMEOUT)


def check_file(page: Page, path: Path, encoding: str) -> None:
    """Uploads a file with semicolons, and waits for what the check found."""
    page.goto("/admin/books/book/import/")
    page.get_by_label("File").set_input_files(path)
    page.get_by_role("button", name="Upload").click()
    # A worker looks into it, whose first start may take a while.
    expect(page.get_by_text("Line 1 is not UTF-8.")).to_be_visible()
    expect(page.get_by_label("Encoding")).to_have_value(encoding.lower())
    page.get_by_role("button", name="Read the file in it").click()
    expect(page.get_by_text(f"Read as CSV with semicolons, {encoding}.")).to_be_visible()
    expect(page.get_by_label("Availability")).to_have_value("Verfügbar")
    page.get_by_role("group", name="If the library has the book").get_by_label("Report an error").check()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("navigation", name="Records")).to_be_visible()


def count_books(page: Page) -> int:
    books: dict[str, Any] = page.request.get("/api/v2/books?author=Zoë&count=true&limit=1").json()
    return int(books["count"])


def test_a_librarian_imports_mends_and_undoes(
    browser: Browser, service: Service, session: str, worker: None, tmp_path: Path
) -> None:
    """The good rows first. What was not imported is corrected in the page, cell by cell, and imported then."""
    file = tmp_path / "bücher.csv"
    rows = [*FINE_ROWS[:20], *FAULTS, UNREADABLE, MISREAD, *FINE_ROWS[20:]]
    file.write_text("\n".join([HEADER, *rows]), encoding="latin-1")
    # Of the upload whose cookies are gone at the end.
    refused = "Failed to load resource: the server responded with a status of 403"
    with open_page(browser, service, session, ignored=refused, viewport={"width": 390, "height": 844}) as page:
        check_file(page, file, "Windows-1252")
        expect(page.get_by_text("39 books to add, 12 records not imported")).to_be_visible()
        expect(page.get_by_role("link", name="With errors 11")).to_be_visible()
        expect(page.get_by_text("ISBN: The book on line 3 has it.")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert count_books(page) == 0
        page.get_by_role("button", name="Import 39 books").click()
        expect(page.get_by_text("39 books added, 12 records not imported")).to_be_visible()
        assert count_books(page) == 39
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the 12 records not imported").click()
        returned = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
        assert [row.split(";")[0] for row in returned[1:]] == [str(number) for number in range(22, 34)]
        undo = page.locator("form", has=page.get_by_role("button", name="Undo this import")).get_attribute("action")
        for position, (field, text) in enumerate(FAULTS.values(), 21):
            page.locator(f'[name="cell-{position}-{field}"]').fill(text)
            page.keyboard.press("Enter")
            if position == 23:
                # The next field below, and not the next of the row.
                expect(page.locator('[name="cell-24-year"]')).to_be_focused()
        # Who leaves the page waits for what is not saved yet.
        page.get_by_role("link", name="With warnings 1").click()
        page.get_by_role("button", name="Import it as it is").click()
        page.get_by_role("button", name="Check again").click()
        page.get_by_role("button", name="Import 11 books").click()
        outcome = "11 books added, 39 records that change nothing, 1 record not imported"
        expect(page.get_by_text(outcome)).to_be_visible()
        assert count_books(page) == 50
        page.goto(str(undo).removesuffix("undo/"))
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_text("It undoes")).to_be_visible()
        expect(page.locator("[data-progress=badge]")).to_have_text("done")
        assert count_books(page) == 11
        page.goto("/admin/books/book/import/")
        page.context.clear_cookies(name="sessionid")
        page.get_by_label("File").set_input_files(file)
        page.get_by_role("button", name="Upload").click()
        expect(page.get_by_text("You are signed out. Sign in, then choose the same file again.")).to_be_visible()
        expect(page.locator("#import-form").get_by_role("link", name="Sign in")).to_be_visible()
        page.context.clear_cookies()
        page.get_by_role("button", name="Upload").click()
        expect(page.get_by_text("You may no longer import books")).to_be_visible()
