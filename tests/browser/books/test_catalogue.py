"""A librarian scans books into the form in a browser, which a catalogue fills."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import open_page
from tests.support.receivers import respond_with
from tests.support.server import Service, run_in_shell, serve_library
from tests.support.sru_servers import ISBN, Catalogue, build_record, respond_with_records, start_catalogue

PREPARATION = """
from tests.support.admin_pages import create_session
print(create_session("annika", "Librarians"))
"""
ADD = "/admin/books/book/add/"
# Books that nobody has yet.
OTHER_ISBNS = ["9780141439600", "9780141439518", "9780141439662", "9780141439556"]


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    with start_catalogue(respond_with_records(build_record())) as catalogue:
        yield catalogue


@pytest.fixture(scope="module")
def library(catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A library that asks the catalogue."""
    variables = {"SRU_SERVERS": catalogue.template, "SRU_ALLOW_PRIVATE": "true"}
    with serve_library(tmp_path_factory.mktemp("library"), **variables) as library:
        yield library


@pytest.fixture(scope="module")
def session(library: Service) -> str:
    return run_in_shell(library.database_url, PREPARATION).strip()


@pytest.fixture
def page(browser: Browser, library: Service, session: str) -> Iterator[Page]:
    # Chromium says so of each response that is none of 2xx.
    with open_page(browser, library, session, ignored="Failed to load resource") as page:
        yield page


def scan(page: Page, isbn: str) -> None:
    expect(page.get_by_label("ISBN")).to_be_focused()
    page.keyboard.type(isbn)
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_scan_fills_the_form_which_is_changed_and_saved(
    browser: Browser, library: Service, session: str, catalogue: Catalogue, width: int, scheme: Any
) -> None:
    isbn = {390: ISBN, 1280: OTHER_ISBNS[0]}[width]
    catalogue.answer = respond_with_records(build_record(m020a=isbn, m655a="", m245a="Emma " + "W" * 200))
    screen = {"width": width, "height": 800}
    with open_page(browser, library, session, viewport=screen, color_scheme=scheme) as page:
        page.goto(ADD)
        scan(page, isbn)
        expect(page.get_by_role("status").filter(has_text="Found at 127.0.0.1")).to_be_visible()
        expect(page.get_by_role("button", name="Use the ticked values")).to_be_focused()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        expect(page.locator("#id_title")).to_have_value("")
        page.keyboard.press("Enter")
        expect(page.locator("#id_author")).to_have_value("Jane Austen")
        expect(page.locator("#id_genre")).to_be_focused()
        page.keyboard.type("Novel")
        page.locator("#id_title").fill(f"Emma in {width}")
        page.keyboard.press("Enter")
        expect(page.locator(".messagelist")).to_contain_text("was added successfully")
    books = library.fetch_all("SELECT isbn13, title, author, year, genre FROM books_book")
    assert (isbn, f"Emma in {width}", "Jane Austen", 1815, "Novel") in map(tuple, books)


def test_the_scan_box_leads_to_a_filled_form_and_what_was_typed_stays(page: Page, catalogue: Catalogue) -> None:
    isbn = OTHER_ISBNS[1]
    catalogue.answer = respond_with_records(build_record(m020a=isbn))
    page.goto(f"{ADD}?isbn={isbn}")
    expect(page.get_by_role("button", name="Use the ticked values")).to_be_focused()
    page.locator("#id_title").fill("Ema")
    page.get_by_role("button", name="Fill from the catalogue").click()
    expect(page.get_by_role("checkbox", name="Title")).not_to_be_checked()
    expect(page.get_by_role("row", name="Title Ema Emma")).to_be_visible()
    page.get_by_role("button", name="Use the ticked values").click()
    expect(page.locator("#id_year")).to_have_value("1815")
    assert page.locator("#id_title").input_value() == "Ema"


def test_what_the_catalogue_found_does_not_move_the_button_that_is_pressed(page: Page, catalogue: Catalogue) -> None:
    catalogue.answer = respond_with_records(build_record(m020a=OTHER_ISBNS[3]))
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.goto(ADD)
    for name, value in {
        "Title": "Emma in Highbury",
        "Author": "Jane Austen",
        "Year": "1815",
        "Genre": "Novel",
    }.items():
        page.get_by_label(name).fill(value)
    page.route("**/catalogue/", hold)
    page.get_by_label("ISBN").fill(OTHER_ISBNS[3])
    with page.expect_request("**/catalogue/"):
        page.keyboard.press("Enter")
    page.get_by_role("button", name="Save", exact=True).hover()
    page.mouse.down()
    with page.expect_response("**/catalogue/"):
        held[0].continue_()
    # When another response is there, the page has read the first one.
    page.evaluate("fetch('/').then(answer => answer.text())")
    expect(page.locator("#catalogue table")).to_have_count(0)
    with page.expect_navigation():
        page.mouse.up()
    expect(page.locator(".messagelist")).to_contain_text("was added successfully")


def test_a_form_that_is_not_filled_says_why(page: Page, catalogue: Catalogue) -> None:
    responses: list[tuple[Any, str]] = [
        (respond_with(200, b"<html>"), "Its answer is no XML that can be read."),
        (respond_with_records(), "The catalogue does not have this ISBN."),
    ]
    page.goto(ADD)
    for response, words in responses:
        catalogue.answer = response
        page.get_by_label("ISBN").fill(OTHER_ISBNS[2])
        page.keyboard.press("Enter")
        expect(page.locator("#catalogue")).to_contain_text(words, timeout=15_000)
        expect(page.locator("#id_title")).to_be_focused()
