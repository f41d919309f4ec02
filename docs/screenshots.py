"""Takes the pictures of the documents from the running library: `make screenshots`.

It serves a library of its own, with invented people and the same books and changes each time, and stores what Chromium
shows in docs/pictures/.
"""

import base64
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.competitors import ROOT, build_environment, fetch_json, find_free_port, wait_for_response
from tests.support.programs import find_command

PICTURES = ROOT / "docs" / "pictures"
BOOKS = 2_000
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
QUALITY = 60
LIST = "/admin/books/book/"
# Who works in the library, and what they did in a month. It prints the session of the one whose screen it is.
PREPARATION = """
import random
from datetime import timedelta
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import F
from django.utils import timezone
import httpx
from books.history.actors import get_or_create_actor
from books.models import Actor, Book, Change
from books.operations.edits import Edit
from books.operations.selection_tasks import MarkTask, run_small_operation
from books.writing import changes
from library_site.db.sql import execute
from tests.support.books_admin import create_book
from tests.support.oauth_flows import sign_in

chance, now = random.Random(7), timezone.now()
people = [User.objects.create_user(name, is_staff=True) for name in ("agnes", "tomas", "mira")]
people[0].groups.set(Group.objects.all())
# Fonts for these letters are not on every machine.
texts = Book.objects.values_list("pk", "title", "author")
rare = [
    pk for pk, *names in texts
    if any(0x590 < ord(letter) < 0x1E00 or ord(letter) > 0x2E80 for letter in "".join(names))
]
execute("DELETE FROM books_book WHERE id IN (SELECT value FROM json_each(%s))", [str(rare)])
pks = list(Book.objects.order_by("pk").values_list("pk", flat=True)[:500])
for day in range(29, -1, -1):
    for person in people:
        actor = get_or_create_actor(Actor.Channel.ADMIN, user_id=person.pk)
        for number in range(chance.randint(0, 9)):
            at = now - timedelta(days=day, minutes=chance.randint(5, 500))
            with transaction.atomic():
                book = changes.lock_book(chance.choice(pks))
                values = {"available": not book.available} if chance.random() < .8 else {"year": book.year - 1}
                changes.change_locked_book(book, values, actor, at)
actor = get_or_create_actor(Actor.Channel.ADMIN, user_id=people[1].pk)
emmas = [("Emma", "978-3-16-148410-0", 1815), ("Emma", "9783161484100", 1816)]
with transaction.atomic():
    for title, isbn, year in [*emmas, ("Persuasion", "9780306406157", 1817), ("Lady Susan", "1-86092-022-5", 1871)]:
        create_book(actor, title=title, author="Jane Austen", year=year, isbn=isbn, genre="Novel")
    Change.objects.filter(at__gte=now).update(at=F("at") - timedelta(hours=3))
    run_small_operation(MarkTask(), Edit({"available": False}).to_parameters(), pks[:40], actor, now)
client = httpx.Client()
sign_in(client, people[0])
print(client.cookies["sessionid"])
"""
VALID_ISBNS = ["9780140449136", "9780140449266", "9780140447934", "9780140449334", "9780140449112", "9780140449174"]
IMPORTED_FILE = "title,author,year,isbn,genre\n" + "".join(
    [f"A Handbook of Maps {year},Ida Lind,{year},{isbn},Atlas\n" for year, isbn in enumerate(VALID_ISBNS, 1951)]
    + [f"A Year in Letters {number},Olav Berg,19x{number},978030640{number}152,Letters\n" for number in range(1, 7)]
    + [f",Olav Berg,190{number},978030640{number}169,Letters\n" for number in range(1, 4)]
)


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    program = find_command("chromium-headless-shell")
    if not program:
        sys.exit("make screenshots needs Chromium, which is not installed.")
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_prepared(Path(folder)) as (url, session),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        take_pictures(browser, url, session, Path(folder))
        browser.close()


def take_pictures(browser: Browser, url: str, session: str, folder: Path) -> None:
    with open_screen(browser, url, session) as page:
        visit_pages(page)
        show_lending(page)
        show_import(page, folder)
    for name, path in {"first-page": "/admin/", "list": f"{LIST}?genre=Novel"}.items():
        with open_screen(browser, url, session, dark=True) as page:
            page.goto(path)
            take(page, f"{name}-dark")
        with open_screen(browser, url, session, phone=True) as page:
            page.goto(path)
            take(page, f"{name}-phone")


@contextmanager
def serve_prepared(folder: Path) -> Iterator[tuple[str, str]]:
    """Serves a seeded library with its worker. Yields its address, and the session of a head librarian."""
    variables = build_environment(f"sqlite:///{folder / 'library.sqlite3'}") | {"WEB_CONCURRENCY": "1"}
    run_command(variables, "migrate", "-v0")
    run_command(variables, "seed_books", "--count", str(BOOKS))
    session = run_command(variables, "shell", "-v0", "-c", PREPARATION).strip()
    command = [sys.executable, "manage.py", "serve", "--with", "run_operations"]
    port = find_free_port()
    server = subprocess.Popen(command, cwd=ROOT, env=variables | {"PORT": str(port)})
    try:
        wait_for_response(server, "the library", lambda: fetch_json(port, "/api/books/1"))
        yield f"http://127.0.0.1:{port}", session
    finally:
        server.terminate()
        server.wait()


def run_command(variables: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True).stdout


@contextmanager
def open_screen(browser: Browser, url: str, session: str, *, dark: bool = False, phone: bool = False) -> Iterator[Page]:
    context = browser.new_context(
        base_url=url,
        viewport=PHONE if phone else WIDE,
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    context.add_cookies([{"name": "sessionid", "value": session, "url": url}])
    yield context.new_page()
    context.close()


def visit_pages(page: Page) -> None:
    page.goto("/admin/")
    take(page, "first-page")
    page.goto(f"{LIST}?genre=Novel")
    take(page, "list")
    page.goto(f"{LIST}?q=emma")
    page.get_by_role("link", name="Emma").first.click()
    take(page, "book")
    page.goto(f"{LIST}duplicates/")
    take(page, "duplicates")
    page.get_by_role("link", name="Merge").first.click()
    take(page, "merge")
    page.goto(f"{LIST}genres/")
    take(page, "genres")
    page.goto(f"{LIST}changes/")
    take(page, "changes")
    page.goto(f"{LIST}bulk_edit/?genre=Essay")
    page.get_by_label("Genre").fill("Essays")
    page.get_by_role("button", name="Preview").click()
    take(page, "bulk-edit")


def show_lending(page: Page) -> None:
    page.goto(f"{LIST}lend/")
    for code in ("9780306406157", "1-86092-022-5", "9780306406158"):
        page.keyboard.type(code)
        page.keyboard.press("Enter")
    page.get_by_text("9780306406158").first.wait_for()
    take(page, "lend")


def show_import(page: Page, folder: Path) -> None:
    """A file of which a check refuses some rows."""
    file = folder / "maps and letters.csv"
    file.write_text(IMPORTED_FILE)
    page.goto(f"{LIST}import/")
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Upload").click()
    check = page.get_by_role("button", name="Check").first
    check.wait_for()
    take(page, "import-columns")
    check.click()
    page.get_by_role("button", name=re.compile(r"Import \d")).first.wait_for()
    take(page, "import-check")


def take(page: Page, name: str) -> None:
    """Stores what the window shows. Playwright itself takes no WebP, which has half the bytes."""
    page.wait_for_load_state("networkidle")
    screen = page.context.new_cdp_session(page)
    response = screen.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path = PICTURES / f"{name}.webp"
    path.write_bytes(base64.b64decode(response["data"]))
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
