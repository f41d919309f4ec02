"""A second resource: all that version 2 promises of books holds for any model with a version."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import override_settings
from drf_spectacular.generators import SchemaGenerator

from tests.api.library_site import shelves
from tests.support.oauth_flows import create_key_header, create_reader
from tests.support.pages import forge_cursor, parse_error, walk_pages

SHELVES = "/api/v2/shelves"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@pytest.fixture(autouse=True)
def served_shelves(api: httpx.Client) -> Iterator[None]:
    """Creates the table in the transaction of the test, and serves the resource beside the others."""
    sql, parameters = connection.schema_editor().table_sql(shelves.Shelf)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
    with override_settings(ROOT_URLCONF=shelves.__name__):
        yield


@pytest.fixture
def shelf(api: httpx.Client) -> dict[str, Any]:
    created: dict[str, Any] = api.post(SHELVES, json={"name": "Novels"}).json()
    return created


def test_it_is_created_read_changed_and_deleted(api: httpx.Client) -> None:
    created = api.post(SHELVES, json={"name": "Novels", "places": 5})
    path = created.headers["Location"]
    shelf = {"id": created.json()["id"], "name": "Novels", "places": 5, "version": 1}
    assert (created.status_code, created.json(), path) == (201, shelf, f"{SHELVES}/{shelf['id']}")
    assert created.headers["ETag"] == f'"v2-{shelf["id"]}-1"'
    replaced = api.put(path, json={"name": "Poems"})
    assert (replaced.status_code, replaced.json()) == (200, {**shelf, "name": "Poems", "version": 2})
    patched = api.patch(path, content=b'{"places": 7}', headers=MERGE_PATCH)
    assert patched.json() == api.get(path).json() == {**shelf, "name": "Poems", "places": 7, "version": 3}
    assert (api.delete(path).status_code, api.get(path).status_code) == (204, 404)


def test_conditions_hold(api: httpx.Client, shelf: dict[str, Any]) -> None:
    path, etag = f"{SHELVES}/{shelf['id']}", f'"v2-{shelf["id"]}-1"'
    assert api.get(path, headers={"If-None-Match": etag}).status_code == 304
    assert api.patch(path, json={"places": 1}, headers={"If-Match": etag}).status_code == 200
    late: list[Callable[[], httpx.Response]] = [
        lambda: api.get(path, headers={"If-Match": etag}),
        lambda: api.patch(path, json={"places": 2}, headers={"If-Match": etag}),
        lambda: api.put(path, json={"name": "Poems"}, headers={"If-Match": etag}),
        lambda: api.delete(path, headers={"If-Match": etag}),
    ]
    assert [parse_error(send()) for send in late] == [(412, "PRECONDITION_FAILED", [])] * 4
    assert api.get(path).json()["places"] == 1


def test_a_change_between_the_check_and_the_write_is_noticed(
    api: httpx.Client, shelf: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = shelves.ShelfViewSet.get_object

    def get_object_before_a_change(view: shelves.ShelfViewSet) -> Any:
        found = read(view)
        shelves.Shelf.objects.update(version=2)
        return found

    monkeypatch.setattr(shelves.ShelfViewSet, "get_object", get_object_before_a_change)
    headers = {"If-Match": f'"v2-{shelf["id"]}-1"'}
    path = f"{SHELVES}/{shelf['id']}"
    assert api.patch(path, json={"places": 1}, headers=headers).status_code == 412
    shelves.Shelf.objects.update(version=1)
    assert api.delete(path, headers=headers).status_code == 412
    assert shelves.Shelf.objects.get().places == shelf["places"]


def test_a_creation_is_carried_out_once(api: httpx.Client) -> None:
    first, second = (api.post(SHELVES, json={"name": "Novels"}, headers={"Idempotency-Key": "a"}) for _ in range(2))
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert shelves.Shelf.objects.count() == 1


def test_it_is_listed_in_pages(api: httpx.Client) -> None:
    for name in "abcde":
        api.post(SHELVES, json={"name": name})
    pages = list(walk_pages(api, f"{SHELVES}?limit=2"))
    assert ["".join(row["name"] for row in page["results"]) for page in pages] == ["ab", "cd", "e"]
    back = list(walk_pages(api, pages[1]["next"], "previous"))
    assert ["".join(row["name"] for row in page["results"]) for page in back] == ["e", "cd", "ab"]
    assert api.get(pages[0]["next"]).links["prev"]["url"] == pages[1]["previous"]
    bad = [{"limit": "501"}, {"cursor": "7"}, {"cursor": forge_cursor([False, "id"])}, {"sort": "name"}]
    assert [parse_error(api.get(SHELVES, params=query)) for query in bad] == [
        (422, "VALIDATION_ERROR", ["limit"]),
        (422, "VALIDATION_ERROR", ["cursor"]),
        (422, "VALIDATION_ERROR", ["cursor"]),
        (400, "UNKNOWN_PARAMETER", ["sort"]),
    ]


def test_its_errors_have_the_form_of_the_version(api: httpx.Client, shelf: dict[str, Any]) -> None:
    path = f"{SHELVES}/{shelf['id']}"
    responses = [
        api.post(SHELVES, json={"name": 7, "place": 1}),
        api.post(SHELVES, content=b"{"),
        api.post(SHELVES, content=b"name=Poems", headers={"Content-Type": "text/plain"}),
        api.patch(path, json={"name": None}),
        api.get(path, params={"fields": "name"}),
        api.get(f"{SHELVES}/999"),
        api.delete(f"{SHELVES}/999"),
        api.delete(SHELVES),
        api.post(SHELVES, json={"name": "Poems"}, headers=create_key_header(create_reader(), "read")),
    ]
    assert [parse_error(response) for response in responses] == [
        (422, "VALIDATION_ERROR", ["name", "place"]),
        (400, "MALFORMED_REQUEST", ["body"]),
        (415, "UNSUPPORTED_MEDIA_TYPE", []),
        (422, "VALIDATION_ERROR", ["name"]),
        (400, "UNKNOWN_PARAMETER", ["fields"]),
        (404, "NOT_FOUND", []),
        (404, "NOT_FOUND", []),
        (405, "METHOD_NOT_ALLOWED", []),
        (403, "FORBIDDEN", []),
    ]
    assert responses[5].json()["error"]["message"] == "Shelf not found"


def test_it_is_documented(api: httpx.Client) -> None:
    document = SchemaGenerator(api_version="v2", urlconf=shelves).get_schema(request=None, public=True)
    operations = [
        operation for path in (SHELVES, f"{SHELVES}/{{id}}") for operation in document["paths"][path].values()
    ]
    assert {operation["operationId"]: operation["summary"] for operation in operations} == {
        "list_shelves": "List shelves",
        "create_shelf": "Create a shelf",
        "read_shelf": "Read a shelf",
        "replace_shelf": "Replace a shelf",
        "change_shelf": "Change a shelf",
        "delete_shelf": "Delete a shelf",
    }
    assert [operation["tags"] for operation in operations] == [["Shelves"]] * 6
