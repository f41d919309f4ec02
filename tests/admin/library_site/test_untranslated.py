"""Each text of each page for people is marked for translation, and has a German one."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone
from django.utils.translation import trans_real
from pytest_django import Settings

from books.models import Book
from books.operations.edits import Edit
from oauth import api_keys
from oauth.models import Authorization
from tests.support import imports, oauth_flows, operations
from tests.support.books import build_book
from tests.support.books_admin import change_book, create_book, delete_book
from tests.support.endpoints import create_endpoint, publish_event
from tests.support.sources import create_source
from tests.support.webhooks_admin import attempt_deliveries
from webhooks.models import Delivery, Endpoint, Received

SHOWN_ATTRIBUTES = ("alt", "aria-label", "placeholder", "title")
WORD = re.compile(r"[^\W\d_]{2,}")
# What people entered and what programs read, alone or in a title.
DATA = re.compile(
    r"""(?:›\ |“)?(?:
        English | Deutsch | UTC | (?:[0-9]{4})?,\ [0-9:]+\ UTC
        | root | head | Librarians | Head\ librarians | Developers
        | books\.csv | (?:[0-9]+\ ×\ )?(?:title|author|year|isbn|genre|row):? | utf-16
        | UTF-8 | UTF-16 | [Ww]indows-125[0-9] | KOI8-R | Mac\ Roman | CP[0-9]+.*   # of a file
        | ISO\ 8859.* | Shift\ JIS | GB\ 18030.* | Big5 | EUC-KR
        | BibTeX | CSV | JSON\ lines | MARC\ 21 | MARCXML | RIS | ONIX.* | Bookshop(?:\ for\ root)? | bookshop
        | Library\ documentation | library-docs
        | Emma(?:\ \(.*\))? | Gone(?:\ \(.*\))? | Jane\ Austen | Novel | :\ (?:Novel|Austen)\)? | isbn-[0-9]+ | zzz
        | Scanner(?:\ \(.*\))? | lib_[0-9a-f]+ | (?:(?:read|write|webhooks)\ ?)+:? | (?:[A-Z2-7]{4}\ ?){8}
        | https?://\S+ | receiver\.example/hook
        | book\.(?:created|updated|deleted):? | book\.created\ [0-9a-f-]+\ →\ \S+ | [0-9a-f-]{36}
        | branch(?:,\ [0-9-]+|:\ book\.created\ 1)? | X-Webhook-Event:.* | "\w+":.* | \{"name".*
        | Axes(?:\ \|\ access\ attempt\ expiration)? | \|\ [a-z ]+   # tables without pages, in the names of permissions
    )(?:\ [|›]|”,?)?""",
    re.VERBOSE,
)


class MarkReader(HTMLParser):
    """Collects the texts of a page that are outside of the marks ⟦ and ⟧."""

    def __init__(self) -> None:
        super().__init__()
        self.depth, self.is_code, self.found = 0, False, set[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_code = tag in ("script", "style")
        attributes = dict(attrs)
        names = [*SHOWN_ATTRIBUTES, *(["value"] if tag == "input" and attributes.get("type") == "submit" else [])]
        names += [name for name in attributes if name.startswith("data-") and " " in (attributes[name] or "")]
        for name in names:
            self.collect(attributes.get(name) or "", 0)

    def handle_endtag(self, tag: str) -> None:
        self.is_code = False

    def handle_data(self, data: str) -> None:
        if not self.is_code:
            self.depth = self.collect(data, self.depth)

    def collect(self, text: str, depth: int) -> int:
        """Returns the depth of marks after the text."""
        outside = ""
        for character in text:
            depth += {"⟦": 1, "⟧": -1}.get(character, 0)
            outside += " " if depth or character == "⟧" else character
        self.found |= {" ".join(part.split()) for part in outside.split("  ") if WORD.search(part)}
        return depth


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts marks around each text that has a German translation."""

    def mark(translation: Any, text: str, *others: Any) -> str:
        key = (text, 0) if others else text
        is_known = translation._catalog.get(key) is not None
        plain_text = text.rpartition(trans_real.CONTEXT_SEPARATOR)[2]
        return f"⟦{plain_text}⟧" if is_known else plain_text

    monkeypatch.setattr(trans_real.DjangoTranslation, "gettext", mark)
    monkeypatch.setattr(trans_real.DjangoTranslation, "ngettext", mark)


def fill_library(root: User) -> list[str]:
    """Creates a row of everything. Returns the addresses of the pages for people."""
    book, gone = create_book(title="Emma", author="Jane Austen", genre="Novel"), create_book(title="Gone")
    change_book(book, year=1816)
    delete_book(gone)
    operator = operations.create_head_librarian()
    edit = operations.do_edit(operator, Edit({"year": 1817}), author="Austen")
    undo = operations.begin_undo(edit, operator)
    endpoint, source = create_endpoint(root), create_source()
    publish_event()
    attempt_deliveries(500)
    app = oauth_flows.create_confidential_app(user=root)
    rows = [
        *(book, endpoint, source, app, root, Delivery.objects.get(), Group.objects.get(name="Librarians")),
        api_keys.create_key(root, "Scanner", frozenset({"read"}), timezone.now())[0],
        Authorization.objects.create(user=root, application=app, scopes="read", created_at=timezone.now()),
        Received.objects.create(source=source, event_id="1", kind="book.created", body=b"{}"),
    ]
    lists = {row: f"/admin/{row._meta.app_label}/{row._meta.model_name}/" for row in rows}
    names = ("", "add/", "{}/change/", "{}/delete/")
    return [
        *(f"{address}{name.format(row.pk)}" for row, address in lists.items() for name in names),
        *(f"{lists[row]}{row.pk}/history/" for row in (book, endpoint, root)),
        *(f"{lists[row]}?q=zzz" for row in (book, endpoint)),
        *("/admin/", "/admin/books/", f"{lists[endpoint]}{endpoint.pk}/replay/", f"{lists[root]}{root.pk}/password/"),
        *(f"{lists[book]}{name}" for name in ("scan/?code=zzz", "scan/?code=a", "lend/", "changes/", "deleted/")),
        *(f"{lists[book]}{name}" for name in (f"{book.pk}/history/state/?version=1", f"{gone.pk}/history/")),
        *(f"{lists[book]}operations/{name}" for name in ("", f"{edit.pk}/", f"{undo.pk}/")),
        *(f"{lists[book]}{name}" for name in ("import/", "duplicates/")),
        f"{lists[book]}bulk_edit/?genre=Novel",
        *(f"{lists[book]}{name}" for name in ("?quality=year", "?year_from=x", "scan/?code=97801404395180")),
        *(f"/accounts/{name}" for name in ("apps", "profile", "two-factor", "logout", "password", "password/sent")),
        *(f"/accounts/password/{name}" for name in ("forgotten", "set", "new")),
        "/nothing",
    ]


def import_refused(root: Client) -> list[str]:
    """Checks a file whose records are refused. Returns the addresses of the pages that say why."""
    rows = ["Emma,Jane Austen,1815,isbn-1,Novel"] * 2 + [
        "Emma,,zzz,isbn-2,Novel",
        "Emma",
        "Emma,Jane Austen,,9E+12,Novel",
    ]
    file = imports.upload(root, "\n".join(["title,author,year,isbn,genre", *rows, f"{'é' * 10}"]).encode("cp1252"))
    imports.choose(root, file)
    return [imports.page(file, name) for name in ("mapping", "check")]


def list_wrong_forms() -> list[tuple[str, dict[str, Any]]]:
    """Forms that are refused, or that report what they did."""
    pks = [str(pk) for pk in Book.objects.values_list("pk", flat=True)]
    books, endpoint = "/admin/books/book/", f"/admin/webhooks/endpoint/{Endpoint.objects.get().pk}"
    selected = {"_selected_action": pks}
    return [
        *((f"/admin/{table}/add/", {}) for table in ("books/book", "auth/user", "oauth/apikey", "webhooks/source")),
        ("/admin/oauth2_provider/application/add/", {"redirect_uris": "http://x", "name": "\u200b"}),
        (f"{books}add/", build_book(year=5, isbn="9780141439519")),
        *((f"{books}catalogue/", {"isbn": isbn}) for isbn in ("x", "9780141439518")),
        (f"{books}add/", build_book(isbn=Book.objects.get().isbn)),
        *((books, {"action": name, **selected}) for name in ("mark_lent", "mark_available", "delete_books")),
        (books, {"action": "mark_lent", "select_across": "1", **selected}),
        *((f"{books}bulk_edit/?genre=Novel", {"change": name, "year": 5}) for name in ("set", "replace", "delete")),
        (f"{books}views/save/", {}),
        (f"{books}columns/", {}),
        (f"{books}lend/", {"code": "Emma"}),
        (f"{books}lend/", {"code": "#1", "state": "lent"}),
        ("/admin/webhooks/endpoint/add/", {"url": "http://x", "in_flight_limit": 0}),
        (f"{endpoint}/replay/", {"after_0": "2026-01-01", "after_1": "00:00", "kinds": "*"}),
        ("/accounts/profile", {"email": "x@library.example", "password": "wrong"}),
        ("/accounts/password", {}),
        ("/accounts/two-factor", {"code": "1", "password": "wrong"}),
    ]


def read_found(response: Any) -> set[str]:
    reader = MarkReader()
    reader.feed(response.content.decode())
    assert reader.depth == 0
    return {text for text in reader.found if not DATA.fullmatch(text)}


def test_each_text_of_each_page_has_a_german_one(root: Client, marks: None, settings: Settings) -> None:
    # An address that is not public is not asked.
    settings.SRU_SERVERS = ["http://127.0.0.1/{isbn}"]
    root.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    addresses = [*fill_library(User.objects.get()), *import_refused(root)]
    as_browser = {"accept": "text/html"}
    found = {address: read_found(root.get(address, headers=as_browser)) for address in addresses}
    for address, form in list_wrong_forms():
        found[f"POST {address}"] = read_found(root.post(address, form, follow=True, headers=as_browser))
    assert {address: texts for address, texts in found.items() if texts} == {}
