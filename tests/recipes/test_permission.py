"""A permission that was added: which requests it refuses, and which not, as docs/recipes/permission.md says."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from books.models import Book
from library_site.http.versions import KNOWN_VERSIONS
from tests.support.books import build_book
from tests.support.books_admin import page_address
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations

BOOKS = "/api/v2/books"


@pytest.fixture
def trainee(db: None) -> User:
    """Returns a user whose other groups may do everything."""
    user = create_librarian("trainee", "Head librarians", "Developers")
    user.groups.add(Group.objects.create(name="Trainees"))
    return user


@pytest.fixture
def key(trainee: User) -> dict[str, str]:
    return create_key_header(trainee, "read write webhooks")


@pytest.fixture
def book(each_client: httpx.Client) -> dict[str, Any]:
    book: dict[str, Any] = each_client.post(
        BOOKS, json=build_book(), headers=create_key_header(create_librarian())
    ).json()
    return book


def test_nothing_is_compiled() -> None:
    assert [route for version in KNOWN_VERSIONS for route in version.compile_routes()] == []


def test_a_trainee_reads(each_client: httpx.Client, book: dict[str, Any], key: dict[str, str]) -> None:
    path = f"{BOOKS}/{book['id']}"
    for address in (BOOKS, path, "/api/books", f"{path}/history", "/api/v2/changes", "/api/v2/events"):
        assert each_client.get(address, headers=key).status_code == 200
    assert each_client.get(BOOKS, headers={**key, "Accept": "text/csv"}).status_code == 200


def test_a_trainee_changes_no_book(each_client: httpx.Client, book: dict[str, Any], key: dict[str, str]) -> None:
    path, old_path = f"{BOOKS}/{book['id']}", f"/api/books/{book['id']}"
    item = {"op": "delete", "id": book["id"]}
    refused = [
        each_client.post(BOOKS, json=build_book(), headers=key),
        each_client.put(path, json=build_book(), headers=key),
        each_client.patch(path, json={"title": "Emma"}, headers=key),
        each_client.delete(path, headers=key),
        each_client.post("/api/books", json=build_book(), headers=key),
        each_client.put(old_path, json=build_book(), headers=key),
        each_client.delete(old_path, headers=key),
        each_client.post(f"{BOOKS}/bulk", json={"operations": [item]}, headers=key),
        each_client.post(f"{path}/revert", json={"version": 1}, headers=key),
        each_client.post(f"{path}/restore", headers=key),
    ]
    assert [(response.status_code, response.json()["error"]["message"]) for response in refused[:4]] == [
        (403, "Trainees only read")
    ] * 4
    assert [response.status_code for response in refused[4:]] == [403] * 6
    assert Book.objects.values("version").get() == {"version": 1}


def test_others_change_books(each_client: httpx.Client, book: dict[str, Any]) -> None:
    assert each_client.patch(f"{BOOKS}/{book['id']}", json={"title": "Emma"}).status_code == 200


def test_operations_webhooks_and_the_admin_do_not_ask(
    each_client: httpx.Client, book: dict[str, Any], trainee: User, key: dict[str, str]
) -> None:
    edit = {"kind": "edit", "filter": {}, "set": {"title": "Emma"}}
    assert each_client.post("/api/v2/operations", json=edit, headers=key).status_code == 202
    run_operations()
    assert Book.objects.get().title == "Emma"
    endpoint = {"url": "https://example.com/hook", "events": ["book.created"]}
    assert each_client.post("/api/v2/webhooks", json=endpoint, headers=key).status_code == 201
    User.objects.filter(pk=trainee.pk).update(is_staff=True)
    browser = Client()
    browser.force_login(User.objects.get(pk=trainee.pk))
    assert browser.get(page_address(Book.objects.get())).context["has_change_permission"] is True
