"""Every page of the admin and of the accounts at rest, with each menu, table and dialog open, and after its action.

axe-core, which checks the rules of WCAG that a program can check, finds nothing to complain about.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.__main__ import NODE_MODULES
from tests.support.browser import open_page
from tests.support.server import Service, run_command, run_in_shell

AXE = NODE_MODULES / "axe-core" / "axe.min.js"
# Creates a superuser, and rows for each page, and prints the session and the ids.
PREPARATION = """
import json
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone
from oauth import api_keys
from oauth.models import Authorization
from books.models import SavedView
from tests.support.admin_pages import create_session
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.endpoints import create_endpoint, publish_event
from tests.support.oauth_flows import create_confidential_app
from tests.support.sources import create_source, store_received
from tests.support.webhooks_admin import attempt_deliveries
from webhooks.models import Delivery

session = create_session("axel", email="axel@library.example", password="correct horse battery staple")
root = User.objects.get(username="axel")
with transaction.atomic():
    book, gone = create_book(title="Axe", author="Ann Axe", isbn="9780141439587"), create_book(isbn="axe-2")
    create_book(title="Axe", author="Ann Axe", isbn="978-0-14-143958-7")
    change_book(book, title="Axes")
    change_book(book, title="Axe")
    delete_book(gone)
SavedView.objects.create(user=root, name="Axes", query="q=axe", columns=["title", "author"])
endpoint, source = create_endpoint(root, form="C"), create_source()
publish_event()
attempt_deliveries(500, answer=b"Internal error")
app = create_confidential_app(user=root)
key, _ = api_keys.create_key(root, "Scanner", frozenset({"read"}), timezone.now())
Authorization.objects.create(user=root, application=app, scopes="read", created_at=timezone.now())
ids = {"book": book.pk, "gone": gone.pk, "endpoint": endpoint.pk, "source": source.pk, "app": app.pk, "key": key.pk}
ids |= {"user": root.pk, "group": Group.objects.earliest("pk").pk, "received": store_received(source).pk}
ids |= {"delivery": Delivery.objects.earliest("pk").pk}
print(json.dumps([session, ids]))
"""
BOOKS, WEBHOOKS = "/admin/books/book/", "/admin/webhooks/"
# Without those that are seen after their action with all that they show at rest.
ADDRESSES = [
    "/admin/",
    *(f"{BOOKS}{name}" for name in ("?q=axe", "?q=nothing-like-this", "add/", "{book}/change/", "{book}/history/")),
    *(f"{BOOKS}{name}" for name in ("scan/?code=axe", "changes/", "deleted/", "genres/", "operations/")),
    *(f"{BOOKS}{name}" for name in ("import/", "duplicates/", "bulk_edit/?author=axe", "{gone}/history/")),
    *(f"/admin/auth/{name}" for name in ("user/", "user/{user}/change/", "user/{user}/history/")),
    *(f"/admin/auth/{name}" for name in ("group/", "group/{group}/change/", "user/{user}/password/")),
    *(f"/admin/oauth2_provider/application/{name}" for name in ("", "add/", "{app}/change/", "{app}/delete/")),
    *(f"/admin/oauth/{name}" for name in ("apikey/", "apikey/add/", "apikey/{key}/change/", "authorization/")),
    *(f"{WEBHOOKS}{name}" for name in ("endpoint/", "endpoint/add/", "endpoint/{endpoint}/change/")),
    *(f"{WEBHOOKS}{name}" for name in ("endpoint/{endpoint}/replay/", "delivery/{delivery}/change/", "received/")),
    *(
        f"{WEBHOOKS}{name}"
        for name in ("source/", "source/add/", "source/{source}/change/", "delivery/?state__exact=dead")
    ),
    f"{WEBHOOKS}received/{{received}}/change/",
    *(f"/accounts/{name}" for name in ("apps", "logout")),
]
# Chromium complains about the status of a form that is shown again.
FORMS_WITH_ERRORS = "Failed to load resource: the server responded with a status of 4"
# All that a page hides: tables and explanations together, and then its menus.
OPEN_DETAILS = "() => document.querySelectorAll('details:not(.menu)').forEach((one) => { one.open = true; })"
OPEN_MENUS = "(menus) => menus.forEach((one) => { one.open = true; })"
# None covers another, where axe could not tell its colours.
MENUS_IN_A_ROW = ".menu-panel { position: static !important; }"
OPEN_DIALOG = """(index) => document.querySelectorAll('dialog').forEach((one, number) => {
    one.close();
    if (number === index) one.showModal();
})"""
# These rules are off by default: the name that a screen reader says contains the words that one sees, and what one
# presses is large enough for a finger (WCAG 2.2).
RUN_AXE = """(context) => axe.run(context, {
    resultTypes: ["violations"],
    rules: { "label-content-name-mismatch": { enabled: true }, "target-size": { enabled: true } },
}).then((results) => results.violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`))"""


class Walk:
    """Opens pages, and collects what axe finds in them, by what was done last."""

    def __init__(self, page: Page, service: Service) -> None:
        self.page, self.found = page, dict[str, list[str]]()
        self.environment = os.environ | {"DATABASE_URL": service.database_url}

    def check(self, state: str, context: str = "html") -> None:
        if violations := self.page.evaluate(RUN_AXE, context):
            self.found[state] = violations

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.page.evaluate(OPEN_DETAILS)
        self.check(address)
        self.check_menus(address, "main details.menu, #content details.menu")

    def check_menus(self, address: str, selector: str) -> None:
        if (menus := self.page.locator(selector)).count():
            self.page.add_style_tag(content=MENUS_IN_A_ROW)
            menus.evaluate_all(OPEN_MENUS)
            self.check(f"{address}, menus open", "details.menu[open]")

    def work(self) -> None:
        """Lets the worker do what waits. A page that sees the end loads itself again, so it is left meanwhile."""
        address = self.page.url
        self.page.goto("about:blank")
        run_command(self.environment, "run_operations", "--once")
        self.page.goto(address)

    def press(self, name: str) -> None:
        """Presses the first button whose name begins so, and that leads to another page."""
        with self.page.expect_navigation():
            self.page.get_by_role("button", name=re.compile(f"^{name}")).first.click()
        self.check(f"{self.page.url}, after {name}")


@pytest.fixture(scope="module")
def prepared(service: Service) -> tuple[str, dict[str, int]]:
    session, ids = json.loads(run_in_shell(service.database_url, PREPARATION))
    return session, ids


@pytest.fixture
def walk(
    browser: Browser, service: Service, prepared: tuple[str, dict[str, int]], node_packages: None
) -> Iterator[Walk]:
    with open_page(browser, service, prepared[0], FORMS_WITH_ERRORS, bypass_csp=True) as page:
        page.add_init_script(path=AXE)
        walk = Walk(page, service)
        yield walk
        assert walk.found == {}


def test_each_page_at_rest_and_with_all_that_it_hides(walk: Walk, prepared: tuple[str, dict[str, int]]) -> None:
    for address in ADDRESSES:
        walk.open(address.format(**prepared[1]))


def test_what_every_page_has(walk: Walk) -> None:
    walk.page.goto("/admin/")
    walk.check_menus("the bar", ".bar details.menu")
    walk.page.reload()
    for index in range(walk.page.locator("dialog").count()):
        walk.page.evaluate(OPEN_DIALOG, index)
        walk.check(f"dialog {index}", "dialog[open]")


def test_books_after_each_action(walk: Walk, prepared: tuple[str, dict[str, int]]) -> None:
    page, book = walk.page, prepared[1]["book"]
    page.goto(f"{BOOKS}?q=axe")
    page.locator(".action-select").first.check()
    walk.check("a book is selected")
    walk.press("Mark as lent")
    page.goto(f"{BOOKS}{book}/change/")
    page.get_by_label("Year").fill("12")
    walk.press("Save")
    page.goto(f"{BOOKS}lend/")
    page.keyboard.type(f"#{book}")
    page.keyboard.press("Enter")
    page.get_by_text("was available, is now lent").or_(page.get_by_text("is lent already")).first.wait_for()
    walk.check("a book is lent")
    page.goto(f"{BOOKS}deleted/")
    walk.press("Restore")
    page.goto(f"{BOOKS}bulk_edit/?author=axe")
    page.locator("#id_genre").fill("Tools")
    walk.press("Preview")
    walk.press("Edit 2 books")
    walk.work()
    walk.check("a bulk edit is done")
    page.goto(f"{BOOKS}{book}/history/")
    page.get_by_role("link", name="Version 1").click()
    walk.check("a state")
    page.goto(f"{BOOKS}duplicates/?kind=isbn")
    page.get_by_role("link", name="Merge").first.click()
    walk.check("a merge is prepared")


def test_an_import_after_each_step(walk: Walk, tmp_path: Path) -> None:
    file = tmp_path / "axes.csv"
    file.write_text("title,author,year,isbn,genre\nAn Axe,Ann Axe,1999,9780306406157,Tools\n,Ann Axe,19x,1,Tools\n")
    walk.page.goto(f"{BOOKS}import/")
    walk.page.locator("input[type=file]").set_input_files(file)
    walk.page.get_by_role("button", name="Upload").click()
    walk.page.wait_for_url("**/mapping/**")
    walk.check("a file waits to be read")
    walk.work()
    walk.check("the columns of a file")
    walk.press("Check")
    walk.work()
    walk.check("the check of a file")


def test_pages_of_people_and_developers_after_each_action(walk: Walk, prepared: tuple[str, dict[str, int]]) -> None:
    page, ids = walk.page, prepared[1]
    page.goto("/admin/auth/user/")
    page.locator(".action-select").first.check()
    walk.check("a person is selected")
    page.goto("/admin/auth/user/add/")
    walk.press("Invite a person")
    page.get_by_label("Username").fill("berta")
    page.get_by_label("Email address").fill("berta@library.example")
    walk.press("Invite a person")
    page.goto("/admin/oauth/apikey/add/")
    page.get_by_label("Name").fill("Night import")
    walk.press("Make an API key")
    page.goto(f"{WEBHOOKS}endpoint/{ids['endpoint']}/change/")
    walk.press("Ping")
    page.goto(f"{WEBHOOKS}endpoint/{ids['endpoint']}/change/")
    walk.press("Make a new secret")
    page.goto(f"{WEBHOOKS}endpoint/{ids['endpoint']}/replay/")
    walk.press("Go on")
    page.goto(f"/admin/oauth2_provider/application/{ids['app']}/change/")
    page.locator("summary", has_text="Make a new secret").click()
    walk.press("Make a new secret")
    page.goto("/admin/auth/user/?q=berta")
    page.locator(".action-select").first.check()
    walk.press("Delete")
    page.goto("/accounts/profile")
    walk.press("Save")
    for name, button in (("password", "Save the password"), ("two-factor", "Turn on")):
        page.goto(f"/accounts/{name}")
        for field in page.locator("main input:visible").all():
            field.fill("wrong")
        walk.press(button)
