"""A version is one line in the version table and what it inherits. It is compiled, and Django answers alike."""

from typing import Any

import httpx
import pytest

from books.models import Book
from library_site.api.shipped import compile_routes
from library_site.http.versions import KNOWN_VERSIONS
from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.operations import run_operations

BOOKS = "/api/v3/books"


@pytest.fixture
def book(each_client: httpx.Client) -> dict[str, Any]:
    created = each_client.post(BOOKS, json=body_of_version_3())
    assert created.status_code == 201, created.text
    assert created.headers["Location"] == f"{BOOKS}/{created.json()['id']}"
    book: dict[str, Any] = created.json()
    return book


def body_of_version_3(**fields: Any) -> dict[str, Any]:
    body = build_book()
    return {"name": body.pop("title"), **body, **fields}


def code_and_fields(response: httpx.Response) -> tuple[int, str, list[str]]:
    error = response.json()["error"]
    return response.status_code, error["code"], [one["field"] for one in error.get("details", [])]


def test_it_is_compiled() -> None:
    assert {route.method for route in compile_routes(KNOWN_VERSIONS[-1].urlpatterns)} == {"GET", "POST", "PUT", "PATCH"}


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/api/v3/books/{id}", {}),
        ("/api/v3/books/{id}/", {}),
        ("/api/books/{id}?version=3", {}),
        ("/api/books/{id}", {"Accept": "application/vnd.library.v3+json"}),
        # The latest is the third now.
        ("/api/books/{id}", {"Accept": "application/vnd.library+json"}),
    ],
)
def test_a_book_is_read_in_version_3(
    each_client: httpx.Client, book: dict[str, Any], path: str, headers: dict[str, str]
) -> None:
    response = each_client.get(path.format(id=book["id"]), headers=headers)
    assert (response.status_code, response.json()) == (200, book)
    assert response.headers["ETag"] == f'"v3-{book["id"]}-1"'


def test_a_book_that_is_not_there_is_not_found(each_client: httpx.Client, book: dict[str, Any]) -> None:
    assert code_and_fields(each_client.get(f"{BOOKS}/9999999")) == (404, "NOT_FOUND", [])


def test_versions_1_and_2_show_the_same_book_as_before(each_client: httpx.Client, book: dict[str, Any]) -> None:
    fields = {name: value for name, value in book.items() if name != "name"}
    assert each_client.get(f"/api/v2/books/{book['id']}").json() == {**fields, "title": book["name"]}
    assert each_client.get(f"/api/books/{book['id']}").json()["title"] == book["name"]


def test_the_list_has_its_filters_orders_and_fields(each_client: httpx.Client, book: dict[str, Any]) -> None:
    response = each_client.get(BOOKS, params={"q": "jane", "sort": "-title", "fields": "id,name", "count": "true"})
    assert response.json()["results"] == [{"id": book["id"], "name": book["name"]}]
    assert response.json()["count"] == 1
    assert code_and_fields(each_client.get(BOOKS, params={"fields": "title"})) == (422, "VALIDATION_ERROR", ["fields"])
    assert code_and_fields(each_client.get(BOOKS, params={"nam": "x"})) == (400, "UNKNOWN_PARAMETER", ["nam"])


def test_pages_link_to_version_3(each_client: httpx.Client, book: dict[str, Any]) -> None:
    each_client.post(BOOKS, json=body_of_version_3())
    page = each_client.get(BOOKS, params={"limit": 1}).json()
    assert "/api/v3/books?" in page["next"]
    assert each_client.get(page["next"]).json()["results"][0]["id"] != book["id"]


def test_a_book_is_changed_and_deleted(each_client: httpx.Client, book: dict[str, Any]) -> None:
    path = f"{BOOKS}/{book['id']}"
    patched = each_client.patch(path, json={"name": "Emma"}, headers={"If-Match": f'"v3-{book["id"]}-1"'})
    assert (patched.status_code, patched.json()["name"], patched.json()["version"]) == (200, "Emma", 2)
    stale = each_client.patch(path, json={"name": "Persuasion"}, headers={"If-Match": f'"v3-{book["id"]}-1"'})
    assert code_and_fields(stale) == (412, "PRECONDITION_FAILED", [])
    replaced = each_client.put(path, json=body_of_version_3(name="Persuasion"))
    assert (replaced.status_code, replaced.json()["name"]) == (200, "Persuasion")
    assert each_client.delete(path).status_code == 204
    assert each_client.get(path).status_code == 404


def test_many_books_are_changed_at_once(each_client: httpx.Client, book: dict[str, Any]) -> None:
    operations = [
        {"op": "create", "book": body_of_version_3()},
        {"op": "update", "id": book["id"], "book": {"name": "Emma"}},
    ]
    response = each_client.post(f"{BOOKS}/bulk", json={"operations": operations})
    assert [one["op"] for one in response.json()["results"]] == ["create", "update"]
    assert each_client.get(f"{BOOKS}/{book['id']}").json()["name"] == "Emma"


def test_the_history_names_fields_as_the_version_does(each_client: httpx.Client, book: dict[str, Any]) -> None:
    path, key = f"{BOOKS}/{book['id']}", create_key_header(create_librarian())
    each_client.patch(path, json={"name": "Emma", "year": 1815})
    reverted = each_client.post(f"{path}/revert", json={"version": 1})
    each_client.delete(path)
    restored = each_client.post(f"{path}/restore")
    assert (reverted.json()["name"], restored.json()["name"], restored.headers["Location"]) == (
        *[book["name"]] * 2,
        path,
    )
    entries = each_client.get(f"{path}/history", headers=key).json()["results"]
    assert [entry["after"] for entry in entries[2:4]] == [
        {"name": book["name"], "year": book["year"]},
        {"name": "Emma", "year": 1815},
    ]
    assert [entry["channel"] for entry in entries] == ["v3"] * 5
    assert entries[1]["before"] == {name: book[name] for name in entries[1]["before"]}
    recent = each_client.get("/api/v3/changes?limit=1", headers=key).json()
    assert recent["next"].startswith("http://127.0.0.1:8000/api/v3/changes?limit=1&cursor=")


def test_bad_bodies_are_refused_in_its_own_terms(each_client: httpx.Client, book: dict[str, Any]) -> None:
    missing = {name: value for name, value in body_of_version_3().items() if name != "name"}
    responses = [
        each_client.post(BOOKS, json=missing),
        each_client.post(BOOKS, json=body_of_version_3(title="Emma", name=7)),
        each_client.post(BOOKS, json=body_of_version_3(isbn=book["isbn"])),
        each_client.post(BOOKS, content=b"{"),
        each_client.post(BOOKS, content=b"name=Emma", headers={"Content-Type": "text/plain"}),
        each_client.request("TRACE", BOOKS),
        each_client.get("/api/v4/books"),
        each_client.get("/api/v3/books", params={"version": "2"}),
    ]
    assert [code_and_fields(response) for response in responses] == [
        (422, "VALIDATION_ERROR", ["name"]),
        (422, "VALIDATION_ERROR", ["name", "title"]),
        (409, "CONFLICT", ["isbn"]),
        (400, "MALFORMED_REQUEST", ["body"]),
        (415, "UNSUPPORTED_MEDIA_TYPE", []),
        (405, "METHOD_NOT_ALLOWED", []),
        (400, "UNSUPPORTED_VERSION", []),
        (400, "UNSUPPORTED_VERSION", []),
    ]
    assert "Served: 1, 2, 3." in responses[6].json()["error"]["message"]


def test_keys_webhooks_and_events_are_there_too(each_client: httpx.Client) -> None:
    key = create_key_header(create_librarian("librarian", "Developers"), "read write")
    created = each_client.post("/api/v3/api-keys", json={"name": "Import", "scopes": "read"}, headers=key)
    assert created.headers["Location"].startswith("/api/v3/api-keys/")
    assert each_client.get("/api/v3/api-keys", headers=key).status_code == 200
    assert each_client.get("/api/v3/webhooks").status_code == 401
    assert each_client.get("/api/v3/events").status_code == 401


def test_it_is_documented_beside_the_others(each_client: httpx.Client) -> None:
    assert each_client.get("/docs/v3").status_code == 200
    alone, together = each_client.get("/openapi/v3.json").json(), each_client.get("/openapi.json").json()
    assert {"/api/v3/books", "/api/v3/books/{book_id}", "/api/v3/books/bulk"} <= alone["paths"].keys()
    assert {"/api/books", "/api/v2/books", "/api/v3/books"} <= together["paths"].keys()


def test_many_books_are_changed_by_a_worker(each_client: httpx.Client, book: dict[str, Any]) -> None:
    key = create_key_header(create_librarian("librarian", "Head librarians"))
    edit = {"kind": "edit", "filter": {"title": "pride"}, "set": {"name": "Emma"}}
    preview = each_client.post("/api/v3/operations?dry_run=true", json=edit, headers=key)
    assert preview.json()["samples"] == [
        {"id": book["id"], "before": {"name": book["name"]}, "after": {"name": "Emma"}}
    ]
    begun = each_client.post("/api/v3/operations", json=edit, headers=key)
    assert (begun.status_code, begun.headers["Location"]) == (202, f"/api/v3/operations/{begun.json()['id']}")
    run_operations()
    assert each_client.get(begun.headers["Location"], headers=key).json()["changed"] == 1
    undone = each_client.post(f"{begun.headers['Location']}/undo", headers=key)
    run_operations()
    assert each_client.get(undone.headers["Location"], headers=key).json()["state"] == "done"
    cancelled = each_client.post(f"{undone.headers['Location']}/cancel", headers=key)
    assert code_and_fields(cancelled) == (409, "CONFLICT", [])
    assert Book.objects.get().title == book["name"]
    refused = each_client.post("/api/v3/operations", json={**edit, "set": {"title": "Emma"}}, headers=key)
    assert code_and_fields(refused) == (422, "VALIDATION_ERROR", ["set.title"])
