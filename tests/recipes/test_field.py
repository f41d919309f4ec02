"""A field that was added is there wherever books are: in the API, the history, events, files and the admin."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.management import call_command
from django.test import Client
from django.test.utils import override_settings

from books.files.formats.registry import FORMATS
from books.models import Book
from tests.support.admin_pages import create_staff
from tests.support.books import build_book
from tests.support.books_admin import build_form, page_address
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations
from webhooks.models import Event

BOOKS = "/api/v2/books"


@pytest.fixture(params=[True, False], ids=["compiled path", "Django alone"])
def compiled_path(request: pytest.FixtureRequest) -> Iterator[None]:
    with override_settings(COMPILED_PATH=request.param):
        yield


@pytest.fixture
def book(api: httpx.Client) -> dict[str, Any]:
    created: dict[str, Any] = api.post(BOOKS, json=build_book(language="de", copies=3)).json()
    return created


@pytest.fixture
def key(db: None) -> dict[str, str]:
    return create_key_header(create_librarian("librarian", "Head librarians"))


@pytest.fixture
def librarian(client: Client, db: None) -> Client:
    client.force_login(create_staff("astrid", "Librarians", "Head librarians"))
    return client


def test_it_is_created_read_and_changed(compiled_path: None, api: httpx.Client, book: dict[str, Any]) -> None:
    path = f"{BOOKS}/{book['id']}"
    for _ in range(2):
        assert api.get(path).json() == book | {"language": "de"}
    assert api.get(f"{BOOKS}?fields=language").json()["results"] == [{"language": "de"}]
    assert api.patch(path, json={"language": "en"}).json()["language"] == "en"
    assert api.put(path, json=build_book()).json()["language"] == "en"
    assert api.put(path, json=build_book(language="")).json()["language"] == ""
    assert api.post(BOOKS, json=build_book()).json()["language"] == ""
    for body in (build_book(language="a" * 36), build_book(language=7)):
        assert api.post(BOOKS, json=body).json()["error"]["details"][0]["field"] == "language"
    assert "language" not in api.get(f"/api/books/{book['id']}").json()
    assert "language" in api.get("/openapi/v2.json").json()["components"]["schemas"]["Book"]["required"]


def test_an_integer_is_created_read_and_changed(compiled_path: None, api: httpx.Client, book: dict[str, Any]) -> None:
    path = f"{BOOKS}/{book['id']}"
    assert api.get(path).json()["copies"] == 3
    assert api.patch(path, json={"copies": 5}).json()["copies"] == 5
    assert api.put(path, json=build_book()).json()["copies"] == 5
    assert api.put(path, json=build_book(copies=0)).json()["copies"] == 0
    assert api.post(BOOKS, json=build_book()).json()["copies"] == 0
    assert api.patch(path, json={"copies": "5"}).json()["error"]["details"][0]["field"] == "copies"
    assert api.post(f"{path}/revert", json={"version": 1}).json()["copies"] == 3
    item = {"op": "update", "id": book["id"], "book": {"copies": 7}}
    assert api.post(f"{BOOKS}/bulk", json={"operations": [item]}).status_code == 200
    assert api.get(f"{BOOKS}/{book['id']}?fields=copies").json() == {"copies": 7}


def test_a_bulk_request_has_it(compiled_path: None, api: httpx.Client, book: dict[str, Any]) -> None:
    items = [{"op": "create", "book": build_book(language="fr")}]
    items += [{"op": "update", "id": book["id"], "book": {"language": "en"}}]
    assert api.post(f"{BOOKS}/bulk", json={"operations": items}).status_code == 200
    assert sorted(Book.objects.values_list("language", flat=True)) == ["en", "fr"]


def test_the_history_has_it(api: httpx.Client, book: dict[str, Any], key: dict[str, str]) -> None:
    path = f"{BOOKS}/{book['id']}"
    api.patch(path, json={"language": "en"})
    assert api.post(f"{path}/revert", json={"version": 1}).json()["language"] == "de"
    api.delete(path)
    assert api.post(f"{path}/restore").json()["language"] == "de"
    _restored, deleted, reverted, changed, _created = api.get(f"{path}/history", headers=key).json()["results"]
    assert (changed["before"], changed["after"]) == ({"language": "de"}, {"language": "en"})
    assert (reverted["before"], reverted["after"]) == ({"language": "en"}, {"language": "de"})
    assert deleted["before"]["language"] == "de"
    # The state before a deletion is what the deletion took away.
    api.patch(path, json={"language": "it"})
    assert api.post(f"{path}/revert", json={"version": 3}).json()["language"] == "de"


def test_events_have_it(api: httpx.Client, book: dict[str, Any]) -> None:
    api.patch(f"{BOOKS}/{book['id']}", json={"language": "en"})
    created, changed = [json.loads(bytes(event.body))["data"] for event in Event.objects.order_by("pk")]
    assert created["book"]["language"] == "de"
    assert (changed["book"]["language"], changed["previous"]) == ("en", {"language": "de"})


def test_many_books_get_it(api: httpx.Client, book: dict[str, Any], key: dict[str, str]) -> None:
    edit = {"kind": "edit", "filter": {}, "set": {"language": "en"}}
    begun = api.post("/api/v2/operations", json=edit, headers=key)
    run_operations()
    assert Book.objects.get().language == "en"
    api.post(f"{begun.headers['Location']}/undo", headers=key)
    run_operations()
    replacement = {"member": "language", "find": "d", "with": "D"}
    api.post("/api/v2/operations", json={"kind": "edit", "filter": {}, "replace": replacement}, headers=key)
    run_operations()
    assert Book.objects.get().language == "De"
    values = {"isbn": "0306406152", "language": "fr"}
    api.post("/api/v2/operations", json={"kind": "edit", "filter": {}, "set": values}, headers=key)
    run_operations()
    assert Book.objects.values("isbn", "language").get() == values


def test_many_books_get_an_integer(api: httpx.Client, book: dict[str, Any], key: dict[str, str]) -> None:
    other = api.post(BOOKS, json=build_book()).json()
    edit = {"kind": "edit", "filter": {}, "set": {"copies": 9}}
    begun = api.post("/api/v2/operations", json=edit, headers=key)
    run_operations()
    assert api.get(begun.headers["Location"], headers=key).json()["changed"] == 2
    assert set(Book.objects.values_list("copies", flat=True)) == {9}
    api.post(f"{begun.headers['Location']}/undo", headers=key)
    run_operations()
    assert {book.pk: book.copies for book in Book.objects.all()} == {book["id"]: 3, other["id"]: 0}


@pytest.mark.unannounced
@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_each_format_has_it(api: httpx.Client, book: dict[str, Any], name: str, tmp_path: Path) -> None:
    file = tmp_path / f"books{FORMATS[name].extension}"
    call_command("export_books", file, format=name)
    api.patch(f"{BOOKS}/{book['id']}", json={"language": "en", "copies": 1})
    call_command("import_books", file, on_match="replace", match_by="isbn", take_doubtful=True)
    assert list(Book.objects.values_list("language", "copies", "version")) == [("de", 3, 3)]
    api.delete(f"{BOOKS}/{book['id']}")
    call_command("import_books", file, take_doubtful=True)
    assert list(Book.objects.values_list("language", "copies")) == [("de", 3)]


def test_files_of_others_have_it_under_its_other_names(db: None, tmp_path: Path) -> None:
    file = tmp_path / "books.csv"
    file.write_text(
        "title,author,year,isbn,genre,Sprache,Exemplare\nEmma,Austen,1815,1,Novel,de,4\nLalka,Prus,1890,2,Novel,,\n"
    )
    call_command("import_books", file, take_doubtful=True)
    assert list(Book.objects.order_by("pk").values_list("language", "copies")) == [("de", 4), ("", 0)]
    # An empty cell leaves what a book has.
    file.write_text("isbn,Exemplare,Sprache\n1,,it\n")
    call_command("import_books", file, on_match="replace", match_by="isbn", on_none="leave")
    assert Book.objects.values("language", "copies").get(isbn="1") == {"language": "it", "copies": 4}


def test_librarians_have_it(librarian: Client, book: dict[str, Any]) -> None:
    listed = librarian.get("/admin/books/book/").content.decode()
    assert '<td class="field-language_column"><bdi>de</bdi></td>' in listed
    stored_book = Book.objects.get()
    changes = {"language": "en", "initial-language": "de", "copies": 4, "initial-copies": 3}
    librarian.post(page_address(stored_book), build_form(stored_book, **changes))
    assert Book.objects.values("language", "copies").get() == {"language": "en", "copies": 4}
    assert librarian.get("/admin/books/book/bulk_edit/").context["form"]["language"].label == "Language"
