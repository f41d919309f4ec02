"""Books that `get_queryset` hides: what follows it, and what does not, as docs/recipes/hide.md says."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from library_site.http.versions import KNOWN_VERSIONS
from tests.support.books import build_book
from tests.support.endpoints import create_made_endpoint
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations
from webhooks.models import Delivery

BOOKS = "/api/v2/books"


@pytest.fixture
def archivist(db: None) -> dict[str, str]:
    user = create_librarian("archivist")
    user.groups.add(Group.objects.create(name="Archive"))
    return create_key_header(user)


@pytest.fixture
def librarian(db: None) -> dict[str, str]:
    owner = create_librarian("librarian", "Head librarians", "Developers")
    return create_key_header(owner, "read write webhooks")


@pytest.fixture
def hidden(each_client: httpx.Client) -> dict[str, Any]:
    hidden: dict[str, Any] = each_client.post(BOOKS, json=build_book(genre="Restricted")).json()
    each_client.post(BOOKS, json=build_book())
    return hidden


def test_nothing_is_compiled() -> None:
    assert [route for version in KNOWN_VERSIONS for route in version.compile_routes()] == []


@pytest.mark.parametrize("books", ["/api/books", BOOKS])
def test_lists_and_files_leave_it_out(
    each_client: httpx.Client,
    hidden: dict[str, Any],
    books: str,
    archivist: dict[str, str],
    librarian: dict[str, str],
) -> None:
    for headers, count in (({}, 1), (librarian, 1), (archivist, 2)):
        assert each_client.get(books, headers=headers).text.count('"isbn"') == count
        assert each_client.get(f"{books}/{hidden['id']}", headers=headers).status_code == (200 if count == 2 else 404)
        assert each_client.get(f"{BOOKS}?count=true", headers=headers).json()["count"] == count
        file = each_client.get(BOOKS, headers={**headers, "Accept": "text/csv"})
        assert len(file.text.splitlines()) == count + 1


def test_it_is_neither_changed_nor_deleted(
    each_client: httpx.Client, hidden: dict[str, Any], archivist: dict[str, str], librarian: dict[str, str]
) -> None:
    path = f"{BOOKS}/{hidden['id']}"
    items = [{"op": "update", "id": hidden["id"], "book": {"genre": "Novel"}}, {"op": "delete", "id": hidden["id"]}]
    for headers in ({}, librarian):
        responses = [
            each_client.put(path, json=build_book(), headers=headers),
            each_client.patch(path, json={"genre": "Novel"}, headers=headers),
            each_client.delete(path, headers=headers),
            each_client.put(f"/api/books/{hidden['id']}", json=build_book(), headers=headers),
            each_client.delete(f"/api/books/{hidden['id']}", headers=headers),
            each_client.post(f"{path}/revert", json={"version": 1}, headers=headers),
        ]
        assert [response.status_code for response in responses] == [404] * 6
        refused = each_client.post(f"{BOOKS}/bulk", json={"operations": items}, headers=headers).json()["error"]
        assert [detail["message"] for detail in refused["details"]] == ["Book not found"] * 2
    changed = each_client.patch(path, json={"title": "Emma"}, headers=archivist)
    reverted = each_client.post(f"{path}/revert", json={"version": 1}, headers=archivist)
    deleted = each_client.delete(path, headers=archivist)
    assert [response.status_code for response in (changed, reverted, deleted)] == [200, 200, 204]


def test_its_isbn_is_known_and_no_others_restore_it(
    each_client: httpx.Client, hidden: dict[str, Any], archivist: dict[str, str], librarian: dict[str, str]
) -> None:
    path = f"{BOOKS}/{hidden['id']}"
    for headers, is_named in ((librarian, False), (archivist, True)):
        conflict = each_client.post(BOOKS, json=build_book(isbn=hidden["isbn"]), headers=headers)
        assert (conflict.status_code, path in conflict.text) == (409, is_named)
    assert each_client.post(f"{path}/restore", headers=librarian).status_code == 404
    each_client.delete(path, headers=archivist)
    assert each_client.post(f"{path}/restore", headers=librarian).status_code == 404
    assert each_client.post(f"{path}/restore", headers=archivist).status_code == 201


# The stream shows what is committed.
@pytest.mark.usefixtures("transactional_db")
def test_the_history_the_stream_and_webhooks_show_it(
    each_client: httpx.Client, hidden: dict[str, Any], archivist: dict[str, str], librarian: dict[str, str]
) -> None:
    create_made_endpoint(User.objects.get(username="librarian"))
    path = f"{BOOKS}/{hidden['id']}"
    each_client.patch(path, json={"title": "Emma"}, headers=archivist)
    assert Delivery.objects.count() == 1
    for address in (f"{path}/history", "/api/v2/changes", "/api/v2/events"):
        response = each_client.get(address, headers=librarian)
        assert (response.status_code, "Emma" in response.text) == (200, True), address


def test_operations_change_it(
    each_client: httpx.Client, hidden: dict[str, Any], archivist: dict[str, str], librarian: dict[str, str]
) -> None:
    edit = {"kind": "edit", "filter": {"genre": "restricted"}, "set": {"title": "Emma"}}
    preview = each_client.post("/api/v2/operations?dry_run=true", json=edit, headers=librarian)
    assert preview.json()["samples"][0]["id"] == hidden["id"]
    each_client.post("/api/v2/operations", json=edit, headers=librarian)
    run_operations()
    assert each_client.get(f"{BOOKS}/{hidden['id']}", headers=archivist).json()["title"] == "Emma"


def test_the_documents_are_made_without_a_caller(each_client: httpx.Client) -> None:
    assert "/api/v2/books" in each_client.get("/openapi/v2.json").json()["paths"]


def test_the_admin_shows_it(each_client: httpx.Client, hidden: dict[str, Any]) -> None:
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    assert hidden["isbn"] in browser.get("/admin/books/book/").content.decode()
