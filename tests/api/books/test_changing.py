"""Changes of one book, in both versions: PUT, and PATCH of version 2."""

from typing import Any

import httpx

from tests.support.api_versions import VERSION_2, APIVersion, with_each_version
from tests.support.books import build_book

EMMA = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "0-14-143958-0", "genre": "Comedy"}
BODIES = [b'{"year": 2000}', b'{"year": "1984"}', b"{", b"", b"[]", b'{"isbn": "in use"}']

pytestmark = with_each_version


def require_change(api: httpx.Client, version: APIVersion, response: httpx.Response, **changes: Any) -> None:
    """The response shows the book, with these changes of what was there before, and so does the address."""
    before = changes.pop("before")
    if version is VERSION_2:
        changes |= {"version": before["version"] + 1, "updated_at": response.json()["updated_at"]}
        changes |= {"isbn13": "9780141439587"} if changes.get("isbn") == EMMA["isbn"] else {}
        assert response.json()["updated_at"] > before["updated_at"]
    assert (response.status_code, response.json()) == (200, {**before, **changes})
    read = api.get(f"{version.books}/{before['id']}")
    assert (read.json(), read.headers["ETag"]) == (response.json(), response.headers["ETag"])


def test_a_changed_book_is_answered_whole(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str
) -> None:
    other = version.create(api).json()
    require_change(api, version, api.put(address, json=EMMA), before=stored_book, **EMMA)
    assert api.get(f"{version.books}/{other['id']}").json() == other


def test_only_the_fields_present_change(api: httpx.Client, version: APIVersion) -> None:
    for name, value in EMMA.items():
        before = version.create(api).json()
        response = api.request(version.changes[-1], f"{version.books}/{before['id']}", json={name: value})
        require_change(api, version, response, before=before, **{name: value})
        api.delete(f"{version.books}/{before['id']}")


def test_equal_values_are_no_change(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str, etag: str
) -> None:
    # Other values of what only the library sets are ignored.
    ignored = {"id": 77, "created_at": "2000", "isbn13": None, "version": 9, "updated_at": []}
    own_values = {name: stored_book[name] for name in EMMA}
    cases = [(method, body) for method in version.changes for body in (own_values, stored_book, own_values | ignored)]
    parts: list[dict[str, Any]] = [{}, {"title": stored_book["title"]}, {"year": stored_book["year"]}, ignored]
    cases += [(version.changes[-1], body) for body in parts]
    for method, body in cases:
        response = api.request(method, address, json=body)
        assert (response.status_code, response.json(), response.headers["ETag"]) == (200, stored_book, etag), (
            method,
            body,
        )
    assert version.list_books(api) == [stored_book]


def test_a_book_keeps_its_own_isbn(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str
) -> None:
    response = api.put(address, json={**EMMA, "isbn": stored_book["isbn"]})
    require_change(api, version, response, before=stored_book, **{**EMMA, "isbn": stored_book["isbn"]})


def test_a_conflict_links_the_book_that_has_the_isbn(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str
) -> None:
    other = version.create(api).json()
    for method in version.changes:
        response = api.request(method, address, json={**EMMA, "isbn": other["isbn"]})
        assert version.parse_error(response) == (409, ["isbn"] if version is VERSION_2 else [])
        assert api.get(httpx.URL(response.headers["Link"].split(">")[0][1:]).path).json() == other
    assert version.list_books(api) == [stored_book, other]


def test_a_body_with_a_problem_changes_nothing(
    api: httpx.Client, version: APIVersion, stored_book: dict[str, Any], address: str
) -> None:
    for method in version.changes:
        response = api.request(method, address, json={**EMMA, "year": "1984"})
        assert version.parse_error(response) == (422, ["year"])
    assert version.list_books(api) == [stored_book]


def test_an_unknown_book_is_not_found_whatever_the_body(api: httpx.Client, version: APIVersion) -> None:
    version.create(api, isbn="in use")
    for method in version.changes:
        for body in BODIES:
            response = api.request(method, f"{version.books}/987654321", content=body, headers={"If-Match": '"stale"'})
            assert (method, body, *version.parse_error(response)) == (method, body, 404, [])
        assert api.request(method, f"{version.books}/987654321", json=build_book()).status_code == 404
    assert len(version.list_books(api)) == 1


def test_a_bad_id_and_a_bad_body_are_listed_together(api: httpx.Client, version: APIVersion) -> None:
    for method in version.changes:
        for body, field in ((b'{"year": "1984"}', "year"), (b"{", "body"), (b"", "body"), (b"[]", "body")):
            status, fields = version.parse_error(api.request(method, f"{version.books}/first", content=body))
            assert (body, status, fields[0], field in fields) == (body, 422, "book_id", True)
