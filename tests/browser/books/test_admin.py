"""The admin pages of books in a browser: on small and large screens, and by keyboard and scanner alone."""

import json
import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import open_page
from tests.support.server import Service, run_command, run_in_shell

# Creates a superuser, a book with two versions and a deleted book, and prints the session and the ids of the books.
PREPARATION = """
import json
from django.db import transaction
from books.models import Actor
from tests.support.admin_pages import create_session
from tests.support.books_admin import add_actor, change_book, create_book, delete_book

session = create_session("pippi", password="correct horse battery staple")
with transaction.atomic():
    book, deleted_book = create_book(title="Ema", author="W" * 255, isbn="browsed"), create_book(title="W" * 200)
    create_book(title="W" * 1000, author="W" * 500, genre="W" * 200, isbn="W" * 64, year=-(2**31))
    create_book(title="E" * 1000, author="W" * 500, genre="W" * 200, isbn="9780140449136 (pbk.) ; 9780140449143 (hbk.)")
    change_book(book, title="Emma")
    delete_book(deleted_book, actor=add_actor(Actor.Channel.V2, app_name="W" * 255))
print(json.dumps([session, book.pk, deleted_book.pk]))
"""
# What is beyond its cell or its card, where it cannot be seen.
FIND_CUT_OFF = """() => [...document.querySelectorAll('.card :is(tbody > tr > *, li)')].filter(one => (
    one.scrollWidth > one.clientWidth + 1
    || one.getBoundingClientRect().right > one.closest('.card').getBoundingClientRect().right + 1
)).map(one => one.textContent)"""
# Each with a menu that every screen has.
PAGES_WITH_MENUS = {"/admin/": "To look at", "/admin/books/book/": "To look at", "/admin/auth/user/": "Manage"}
# Opens each menu of the page that is seen, and returns the place of its panel, and how many numbers it hides.
MEASURE_MENUS = """async () => {
    const panels = [];
    for (const menu of document.querySelectorAll('details.menu')) {
        const panel = menu.querySelector('.menu-panel');
        if (!menu.checkVisibility()) continue;
        // That of a window of another size.
        panel.removeAttribute('style');
        const opened = new Promise((done) => menu.addEventListener('toggle', done, { once: true }));
        menu.querySelector('summary').click();
        await opened;
        const hidden = [...menu.querySelectorAll('.count')].filter((count) => !count.checkVisibility()).length;
        panels.push({...panel.getBoundingClientRect().toJSON(), hidden});
        menu.open = false;
    }
    return panels;
}"""
MANY_BOOKS = """
from django.db import transaction
from django.utils import timezone
from books.history.actors import get_or_create_actor
from books.models import Actor
from books.writing import changes
from tests.support.books import build_book

actor = get_or_create_actor(Actor.Channel.COMMAND)
with transaction.atomic():
    changes.create_books([build_book(genre="Counted") for _ in range(60)], actor, now=timezone.now())
"""


@pytest.fixture(scope="module")
def prepared(service: Service) -> tuple[str, int, int]:
    """The key of the superuser's session, and the ids of a book and of a deleted book."""
    session, pk, deleted_pk = json.loads(run_in_shell(service.database_url, PREPARATION))
    return session, pk, deleted_pk


@pytest.fixture
def page(browser: Browser, service: Service, prepared: tuple[str, int, int]) -> Iterator[Page]:
    with open_page(browser, service, prepared[0]) as page:
        yield page


def scan(page: Page) -> None:
    """A scanner ends with Enter. A stray scan must not answer a question."""
    page.keyboard.type("9780306406157")
    page.keyboard.press("Enter")


def test_pages_fit_the_screen(page: Page, prepared: tuple[str, int, int]) -> None:
    _, pk, deleted_pk = prepared
    pages = [
        "",
        "?quality=year&author=e",
        "?q=nothing-like-this",
        "lend/",
        "import/",
        "add/",
        "scan/?code=e",
        "changes/",
        "deleted/",
        "bulk_edit/?author=e",
        "operations/",
        "genres/",
        "duplicates/",
        f"duplicates/merge/?pair=1-{pk}",
        f"{pk}/delete/",
        f"{pk}/history/",
        f"{pk}/history/state/?version=1",
        f"{pk}/change/?state=1",
        f"{deleted_pk}/history/",
    ]
    for address in pages:
        page.set_viewport_size({"width": 320, "height": 800})
        page.goto(f"/admin/books/book/{address}")
        for width in (320, 390, 1024, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth") == width, (address, width)
            assert page.evaluate(FIND_CUT_OFF) == [], (address, width)
    page.goto("/admin/books/book/deleted/")
    expect(page.locator("td.quiet a").first).to_have_css("text-decoration-line", "underline")


def sign_in_again(page: Page, button: str) -> None:
    page.context.clear_cookies(name="sessionid")
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_text("the form that you sent is kept")).to_be_visible()
    page.get_by_label("Username").fill("pippi")
    page.get_by_label("Password").fill("correct horse battery staple")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("The form has again what you had entered")).to_be_visible()


def test_a_form_outlives_the_session(browser: Browser, service: Service, prepared: tuple[str, int, int]) -> None:
    # The form may ask for warnings while nobody is signed in.
    with open_page(browser, service, prepared[0], ignored="Failed to load resource") as page:
        page.goto(f"/admin/books/book/{prepared[1]}/change/")
        page.get_by_label("Genre").fill("Kept")
        sign_in_again(page, "Save")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_text("Saved.")).to_be_visible()
        expect(page.get_by_label("Genre")).to_have_value("Kept")
        page.goto("/admin/books/book/?q=browsed")
        page.locator(".action-select").check()
        sign_in_again(page, "Mark as lent")
        expect(page.locator(".action-select")).to_be_checked()
        page.reload()
        expect(page.locator(".action-select")).not_to_be_checked()


def test_a_bulk_edit_shows_its_progress_until_it_is_done(
    browser: Browser, service: Service, prepared: tuple[str, int, int]
) -> None:
    with open_page(browser, service, prepared[0], viewport={"width": 390, "height": 800}) as page:
        page.goto("/admin/books/book/bulk_edit/?q=browsed")
        expect(page.get_by_label("Title")).to_be_focused()
        page.locator("#id_genre").fill("W" * 200)
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Edit 1 book")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        scan(page)
        page.get_by_role("button", name="Edit 1 book").click()
        expect(page.locator("[data-progress=badge]")).to_have_text("waiting")
        run_command(os.environ | {"DATABASE_URL": service.database_url}, "run_operations", "--once")
        expect(page.locator("[data-progress=badge]")).to_have_text("done")
        expect(page.get_by_role("button", name="Undo")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_text("It undoes 1 book edited")).to_be_visible()
        expect(page.locator("progress")).to_be_visible()


def test_escape_closes_a_menu_and_then_leaves_the_question(page: Page, prepared: tuple[str, int, int]) -> None:
    page.goto(f"/admin/books/book/{prepared[1]}/change/")
    page.get_by_role("link", name="Delete").click()
    scan(page)
    expect(page.get_by_role("button", name="Delete")).to_be_visible()
    menu = page.locator("header details.menu").first
    menu.locator("summary").click()
    page.keyboard.press("Escape")
    expect(menu.locator(".menu-panel")).to_be_hidden()
    with page.expect_navigation():
        page.keyboard.press("Escape")
    assert page.url.endswith(f"/{prepared[1]}/change/")


# Adds four pairs of duplicates, and lets the next page compare all books.
DUPLICATES = """
from books.models import Summary
from tests.support.books_admin import create_book

Summary.objects.all().delete()

for title in ("A", "B", "C", "D"):
    for author in ("Selma Lagerlöf", "Lagerlöf, Selma"):
        create_book(title=f"Twice {title}", author=author, isbn=f"{title} {author}")
"""


def test_one_key_a_pair_works_off_the_duplicates(
    browser: Browser, service: Service, prepared: tuple[str, int, int]
) -> None:
    run_in_shell(service.database_url, DUPLICATES)
    with open_page(browser, service, prepared[0], has_touch=True, is_mobile=True) as page:
        page.goto("/admin/books/book/duplicates/")
        page.get_by_role("link", name="Go through them one by one").tap()
        expect(page.get_by_role("button", name="Merge")).to_be_visible()
        expect(page.locator(".button kbd").filter(visible=True)).to_have_count(0)
    with open_page(browser, service, prepared[0]) as page:
        page.goto("/admin/books/book/duplicates/")
        page.get_by_role("link", name="Merge Twice A").click()
        expect(page.locator(".button kbd").filter(visible=True)).to_have_count(3)
        expect(page.locator("table.merge")).to_contain_text("Twice A")
        scan(page)
        page.keyboard.down("m")
        expect(page.locator("table.merge")).to_contain_text("Twice B")
        # The key is still down, so it repeats itself.
        page.keyboard.down("m")
        page.keyboard.up("m")
        page.keyboard.press("s")
        expect(page.locator("table.merge")).to_contain_text("Twice C")
        page.keyboard.press("n")
        expect(page.locator("table.merge")).to_contain_text("Twice D")
        with page.expect_navigation():
            page.keyboard.press("Shift+M")
        page.goto("/admin/books/book/duplicates/")
        expect(page.get_by_role("link", name="Merge Twice")).to_have_count(1)
        page.get_by_role("button", name="Not a duplicate : Twice B").click()
        expect(page.get_by_role("link", name="Merge Twice")).to_have_count(0)
        assert page.url.rpartition("#")[2].startswith("pair-")


def test_a_scan_leads_to_a_new_book_by_enter_alone(page: Page) -> None:
    page.goto("/admin/")
    expect(page.locator("#scan-code")).to_be_focused()
    page.keyboard.type("0306406152")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Add this book").click()
    assert page.get_by_label("ISBN").input_value() == "978-0-306-40615-7"
    assert page.evaluate("document.activeElement.name") == "title"


def test_enter_in_the_isbn_moves_on_and_warnings_come_meanwhile(page: Page) -> None:
    page.goto("/admin/books/book/add/")
    expect(page.get_by_label("ISBN")).to_be_focused()
    page.keyboard.type("9780306406157")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.name") == "title"
    expect(page.get_by_label("ISBN")).to_have_value("978-0-306-40615-7")
    page.get_by_label("Year").fill("12")
    page.get_by_label("Genre").press_sequentially("nov")
    expect(page.locator(".field-year .field-warnings")).to_contain_text("improbable")
    expect(page.locator("#suggested-genre option")).not_to_have_count(0)


def test_a_warning_does_not_move_the_button_that_is_pressed(page: Page, prepared: tuple[str, int, int]) -> None:
    page.goto(f"/admin/books/book/{prepared[1]}/change/")
    page.get_by_label("Year").fill("12")
    page.get_by_role("button", name="Save", exact=True).hover()
    with page.expect_response("**/warnings/?*") as response:
        page.mouse.down()
    # When a second response is there, the page has read the first one.
    page.evaluate("address => fetch(address).then(answer => answer.text())", response.value.url)
    with page.expect_navigation():
        page.mouse.up()
    expect(page.locator(".field-year .errorlist")).to_contain_text("Save again to keep it")


def test_a_digit_opens_a_numbered_book_and_a_scan_is_none(page: Page) -> None:
    page.goto("/admin/books/book/scan/?code=e")
    second = page.locator("[data-digit='2']").get_attribute("href")
    expect(page.locator("#scan-code")).to_be_focused()
    page.keyboard.type("9780306406157")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Add this book").wait_for()
    page.goto("/admin/books/book/scan/?code=e")
    expect(page.locator("#scan-code")).to_be_focused()
    page.keyboard.press("2")
    page.wait_for_url(f"**{second}")


def test_the_keys_for_the_scan_box_and_the_list_of_shortcuts(
    browser: Browser, service: Service, prepared: tuple[str, int, int]
) -> None:
    with open_page(browser, service, prepared[0], viewport={"width": 390, "height": 800}) as page:
        page.goto("/admin/")
        expect(page.locator("#scan-code")).to_be_focused()
        page.keyboard.press("?")
        shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(shortcuts).to_contain_text("to the box for scans and searches")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.keyboard.press("Escape")
        expect(shortcuts).to_be_hidden()
        expect(page.locator("#scan-code")).to_be_focused()
        page.keyboard.type("why?/")
        assert page.locator("#scan-code").input_value() == "why?/"
        page.goto("/admin/books/book/changes/")
        with page.expect_navigation():
            page.keyboard.press("/")
        expect(page.locator("#scan-code")).to_be_focused()
        page.get_by_role("button", name="Keyboard shortcuts").click()
        page.get_by_label("Single characters are shortcuts").uncheck()
        page.reload()
        expect(page.locator("#scan-code")).to_be_focused()
        page.keyboard.press("?")
        assert page.locator("#scan-code").input_value() == "?"


def test_each_menu_opens_inside_the_window(page: Page) -> None:
    wrong = []
    for address, name in PAGES_WITH_MENUS.items():
        page.goto(address)
        for width, height in ((390, 690), (1024, 600), (1280, 800), (1920, 600)):
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator("summary:visible", has_text=name)).not_to_have_count(0)
            for number, box in enumerate(page.evaluate(MEASURE_MENUS)):
                is_inside = 0 <= box["left"] < box["right"] <= width and 0 <= box["top"] < box["bottom"] <= height
                # What has no room below opens upwards.
                if not is_inside or box["height"] < 90 or box["hidden"]:
                    wrong.append((address, width, height, number, box))
    assert wrong == []


def test_a_phone_has_room_for_books_and_for_what_can_be_done(
    browser: Browser, service: Service, prepared: tuple[str, int, int]
) -> None:
    screen = {"width": 390, "height": 844}
    with open_page(browser, service, prepared[0], viewport=screen, locale="de-DE", has_touch=True) as page:
        page.goto("/admin/books/book/?author=e&all=1")
        box = page.locator("#result_list tbody tr").first.bounding_box()
        assert box
        assert (box["y"] < 300, box["height"] < 110) == (True, True)
        page.locator(".action-select").first.check()
        bar = page.locator(".actions-bar.sticky")
        words = ["×", "Bearbeiten", "Ausleihen", "Rückgabe", "Löschen"]
        expect(bar.get_by_role("button")).to_have_text(words, use_inner_text=True)
        expect(bar.locator(".across")).to_be_visible()
        # Two lines of buttons.
        box = bar.bounding_box()
        assert box
        assert box["height"] < 120
        page.goto("/admin/")
        expect(page.locator("#scan-code")).to_be_in_viewport(ratio=1)
        expect(page.locator(".tiles")).to_be_in_viewport(ratio=1)


def test_the_first_book_is_three_keys_away_from_the_top(page: Page) -> None:
    page.goto("/admin/books/book/")
    first_book = page.locator("#result_list tbody th a").first
    for key in ("Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(first_book).to_be_focused()
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.split("?")[0].endswith("/change/")


def test_all_books_of_the_list_are_marked_and_the_message_undoes_it(page: Page, service: Service) -> None:
    run_in_shell(service.database_url, MANY_BOOKS)
    page.goto("/admin/books/book/?genre=Counted")
    page.locator(".action-select").first.check()
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_label("all 60")).to_be_hidden()
    page.locator(".action-select").first.check()
    page.get_by_label("all 60").check()
    page.get_by_role("button", name="Mark as lent").click()
    page.get_by_role("button", name="Mark 60 books as lent").click()
    expect(page.locator(".messagelist")).to_contain_text("60 books are now lent.")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Undo: 60 books marked as lent")
