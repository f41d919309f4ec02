"""A second resource: all that version 2 promises of books holds for any model with a version."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from django.db import connection
from django.test.utils import override_settings

from tests.api.library_site import shelves
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


def test_a_shelf_is_created_read_changed_and_deleted(api: httpx.Client) -> None:
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
    assert api.get(path).json()["error"]["message"] == "Shelf not found"


def test_a_shelf_that_has_changed_is_neither_read_nor_written_under_its_old_etag(
    api: httpx.Client, shelf: dict[str, Any]
) -> None:
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


def test_shelves_are_listed_in_pages(api: httpx.Client) -> None:
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
