"""Lending in a browser, by scanner and keyboard: no scan is lost, and none counts twice."""

import json
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import open_page
from tests.support.server import Service, run_in_shell

LEND = "/admin/books/book/lend/"
CHANGE = f"**{LEND}change/"
# Prints the sessions of two librarians.
PREPARATION = """
import json
from tests.support.admin_pages import create_session
print(json.dumps([create_session(name, "Librarians") for name in ("annika", "tommy")]))
"""
MANY_SCANS = 40
NextBooks = Callable[[int], list[int]]


@pytest.fixture(scope="module")
def sessions(service: Service) -> list[str]:
    session_keys: list[str] = json.loads(run_in_shell(service.database_url, PREPARATION))
    return session_keys


@pytest.fixture(scope="module")
def next_books(service: Service) -> NextBooks:
    """Returns a function that returns the ids of books that are available and that no other test lends."""
    rows = service.fetch_all("SELECT id FROM books_book WHERE available AND version = 1 ORDER BY id")
    numbers, ids = count(), [pk for (pk,) in rows]
    return lambda amount: [ids[next(numbers)] for _ in range(amount)]


@pytest.fixture
def page(browser: Browser, service: Service, sessions: list[str]) -> Iterator[Page]:
    """The page of lending of the first librarian, who may lose the connection."""
    with open_page(browser, service, sessions[0], ignored="Failed to load resource") as page:
        page.goto(LEND)
        expect(page.locator("#lending-code")).to_be_focused()
        yield page


def scan(page: Page, *ids: object) -> None:
    """Types the numbers of books, or other codes, as fast as the page takes them."""
    for code in ids:
        page.keyboard.insert_text(f"#{code}" if isinstance(code, int) else str(code))
        page.keyboard.press("Enter")


def expect_outcomes(page: Page, *outcomes: str) -> None:
    """Waits until the rows, the last scan first, have these outcomes."""
    rows = page.locator("#lending-rows .lending-row")
    expect(rows).to_have_count(len(outcomes))
    for number, outcome in enumerate(outcomes):
        expect(rows.nth(number)).to_have_attribute("data-outcome", outcome)


def list_changes(service: Service, *ids: int) -> list[tuple[int, int]]:
    """Returns the ids and the versions of what the history has about these books."""
    numbers = ", ".join(map(str, ids))
    return service.fetch_all(
        f"SELECT book_id, version FROM books_change WHERE book_id IN ({numbers}) ORDER BY book_id, version"  # noqa: S608  # our own numbers
    )


def is_available(service: Service, pk: int) -> bool:
    [(available,)] = service.fetch_all(f"SELECT available FROM books_book WHERE id = {pk:d}")  # noqa: S608  # a number
    return bool(available)


def test_each_of_many_scans_counts_once_though_the_network_drops(
    page: Page, service: Service, next_books: NextBooks
) -> None:
    ids = next_books(MANY_SCANS)
    scan(page, *ids[:15])
    page.context.set_offline(True)
    scan(page, *ids[15:30])
    expect(page.locator("#lending-trouble")).to_contain_text("out of reach")
    page.context.set_offline(False)
    scan(page, *ids[30:])
    expect(page.locator("[data-outcome=waiting]")).to_have_count(0, timeout=60_000)
    expect(page.locator("#lending-rows [data-outcome=changed]")).to_have_count(MANY_SCANS)
    expect(page.locator("#lending-code")).to_be_focused()
    assert list_changes(service, *ids) == [(pk, 2) for pk in sorted(ids)]


def lose_response(route: Route) -> None:
    route.fetch()
    route.abort()


def answer_with(status: int) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=status, headers={"Retry-After": "0"}, body="<html></html>")


def test_a_request_that_fails_stays_and_is_sent_again(page: Page, service: Service, next_books: NextBooks) -> None:
    # With another token, or a book that is read again, the page tries again by itself.
    failures = [*map(answer_with, (403, 412, 200, 409, 429, 503)), lose_response]
    ids = next_books(len(failures))
    for number, (pk, fail) in enumerate(zip(ids, failures, strict=True), start=1):
        page.route(CHANGE, fail, times=1)
        scan(page, pk)
        if number > 2:
            expect_outcomes(page, "waiting", *["changed"] * (number - 1))
            page.get_by_role("button", name="Try again").click()
        expect_outcomes(page, *["changed"] * number)
        expect(page.get_by_role("button", name="Try again")).to_be_hidden()
    expect(page.locator("#lending-latest")).to_contain_text("was available, is now lent")
    assert list_changes(service, *ids) == [(pk, 2) for pk in sorted(ids)]


def test_a_scan_at_which_the_library_fails_does_not_stop_the_others(page: Page, next_books: NextBooks) -> None:
    ids = next_books(2)
    page.route(CHANGE, answer_with(500), times=1)
    scan(page, *ids)
    expect_outcomes(page, "changed", "refused")


def test_a_tab_with_scans_that_wait_asks_before_it_closes(page: Page, next_books: NextBooks) -> None:
    [pk] = next_books(1)
    page.route(CHANGE, answer_with(503), times=1)
    scan(page, pk)
    expect(page.locator("#lending-trouble")).to_contain_text("is busy")
    with page.expect_event("dialog") as dialog:
        page.close(run_before_unload=True)
    dialog.value.dismiss()
    page.get_by_role("button", name="Try again").click()
    expect_outcomes(page, "changed")


def test_scans_wait_for_the_person_who_made_them(
    page: Page, service: Service, sessions: list[str], next_books: NextBooks
) -> None:
    [pk] = next_books(1)
    for cookies, trouble in (([], "You are signed out"), (["sessionid"], "Someone else is signed in")):
        page.context.clear_cookies()
        page.context.add_cookies([{"name": name, "value": sessions[1], "url": service.url} for name in cookies])
        page.evaluate("dispatchEvent(new Event('focus'))") if cookies else scan(page, pk)
        expect(page.locator("#lending-trouble")).to_contain_text(trouble)
    assert list_changes(service, pk) == []
    page.context.add_cookies([{"name": "sessionid", "value": sessions[0], "url": service.url}])
    page.get_by_role("button", name="Try again").click()
    expect_outcomes(page, "changed")
    assert list_changes(service, pk) == [(pk, 2)]


def test_one_more_reading_of_a_code_is_ignored(page: Page, service: Service, next_books: NextBooks) -> None:
    [pk] = next_books(1)
    page.clock.install()
    scan(page, pk, pk)
    expect_outcomes(page, "changed")
    page.clock.fast_forward(2000)
    scan(page, pk)
    expect_outcomes(page, "unchanged", "changed")
    assert list_changes(service, pk) == [(pk, 2)]


def test_the_keyboard_is_enough_to_lend_take_back_and_undo(page: Page, service: Service, next_books: NextBooks) -> None:
    first, second = next_books(2)
    scan(page, first, second)
    page.keyboard.press("F8")
    scan(page, first)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect_outcomes(page, *["changed"] * 5)
    assert (is_available(service, first), is_available(service, second)) == (False, True)
    scan(page, second)
    expect_outcomes(page, "unchanged", *["changed"] * 5)
    page.keyboard.press("Control+z")
    expect_outcomes(page, "changed", "unchanged", *["changed"] * 5)
    assert is_available(service, first)
    page.keyboard.press("Control+z")
    expect(page.locator("#lending-latest")).to_have_text("There is nothing to undo.")
    assert list_changes(service, first) == [(first, version) for version in (2, 3, 4, 5)]


def test_what_someone_else_changed_is_not_undone(page: Page, service: Service, next_books: NextBooks) -> None:
    [pk] = next_books(1)
    scan(page, pk)
    expect_outcomes(page, "changed")
    service.fetch_all(f"UPDATE books_book SET version = version + 1 WHERE id = {pk:d}")  # noqa: S608  # a number
    page.keyboard.press("Control+z")
    expect_outcomes(page, "refused", "changed")
    expect(page.locator("#lending-latest")).to_contain_text("Someone changed the book since")
    assert not is_available(service, pk)
