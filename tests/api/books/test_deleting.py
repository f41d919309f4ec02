"""DELETE of one book, in both versions."""

from typing import Any

import httpx

from tests.support.api_versions import VERSION_2, APIVersion, with_each_version
from tests.support.books import build_book

pytestmark = with_each_version


def test_a_deleted_book_is_gone(api: httpx.Client, version: APIVersion, address: str) -> None:
    response = api.delete(address)
    assert (response.status_code, response.content) == version.deleted
    assert ("Content-Type" in response.headers) is bool(response.content)
    other_version = address.replace("/v2", "") if version is VERSION_2 else address.replace("/api", "/api/v2")
    responses = [
        api.get(address),
        *(api.request(method, address, json=build_book()) for method in version.changes),
        api.delete(address),
        api.get(other_version),
    ]
    assert [(response.status_code, "Book not found" in response.text) for response in responses] == [(404, True)] * len(
        responses
    )
    assert version.list_books(api) == []


def test_only_the_book_named_is_deleted(api: httpx.Client, version: APIVersion, address: str) -> None:
    other = version.create(api).json()
    # The body is ignored.
    response = api.request("DELETE", address, content=b"{", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.content) == version.deleted
    assert version.list_books(api) == [other]


def test_the_id_of_a_deleted_book_is_never_used_again(api: httpx.Client, version: APIVersion) -> None:
    ids = []
    for _ in range(3):
        creation = version.create(api)
        ids.append(creation.json()["id"])
        api.delete(creation.headers["Location"])
    assert ids == sorted(set(ids))


def test_an_isbn_may_be_used_again_after_its_book_is_gone(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str
) -> None:
    api.delete(address)
    version.create(api, isbn=stored_book["isbn"])


def test_the_first_failing_check_is_answered(api: httpx.Client, version: APIVersion, address: str) -> None:
    stale_headers = {"If-Match": '"of another time"'}
    paths = [f"{version.books}/987654321?shelf=1", f"{version.books}/first?shelf=1", f"{address}?shelf=1", address]
    errors = [version.parse_error(api.delete(path, headers=stale_headers)) for path in paths]
    # Only version 2 knows its parameters.
    expected = {
        True: [(404, []), (422, ["book_id", "shelf"]), (400, ["shelf"]), (412, [])],
        False: [(404, []), (422, ["book_id"]), (412, []), (412, [])],
    }
    assert errors == expected[version is VERSION_2]
