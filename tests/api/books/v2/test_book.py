"""One book of version 2: how it is read, added, changed and deleted, its bodies, and its conditions (RFC 9110, 13)."""

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.pages import LIST_URL, list_ids, parse_error


def test_a_book_is_answered_whole(api: httpx.Client) -> None:
    before = datetime.now(UTC)
    created = api.post(LIST_URL, json=build_book(isbn="0-14-143951-3")).json()
    response = api.get(f"{LIST_URL}/{created['id']}")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    assert response.json() == {
        "id": created["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "0-14-143951-3",
        "isbn13": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
        "version": 1,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created["created_at"])
    assert before <= datetime.fromisoformat(created["created_at"]) <= datetime.now(UTC)
    of_version_1 = api.get(f"/api/books/{created['id']}").json()
    assert f"{of_version_1['created_at']}Z" == created["created_at"]
    assert response.json() == {**response.json(), **of_version_1, "created_at": created["created_at"]}


def test_leading_zeros_and_a_slash_at_the_end_change_nothing(api: httpx.Client, stored_book: dict[str, Any]) -> None:
    for path in (f"{'0' * 5_000}{stored_book['id']}", f"{stored_book['id']}/"):
        assert api.get(f"{LIST_URL}/{path}").json() == stored_book


def test_a_client_may_select_fields(api: httpx.Client, address: str, stored_book: dict[str, Any]) -> None:
    for names in ("title", "title,id", "version,isbn13,available,created_at", ",".join(stored_book)):
        response = api.get(address, params={"fields": names})
        assert response.json() == {name: stored_book[name] for name in names.split(",")}
    assert api.get(f"{address}?fields=id,title,id").text == api.get(f"{address}?fields=id,title").text


@pytest.mark.parametrize("array", ["fields[]=id&fields[]=title", "fields%5B0%5D=id&fields%5B1%5D=title"])
def test_an_array_of_a_client_is_a_repeated_parameter(api: httpx.Client, address: str, array: str) -> None:
    """As axios and PHP write one. A parameter of one value is no array."""
    assert list(api.get(f"{address}?{array}").json()) == ["id", "title"]
    assert list(api.get(f"{LIST_URL}?{array}&limit=1").json()["results"][0]) == ["id", "title"]
    assert api.get(f"{LIST_URL}?{array.replace('fields', 'title')}").status_code == 400
    assert api.get(f"{address}?{array.replace('fields', 'fields[x]')}").status_code == 400


def test_only_existing_fields_may_be_selected(api: httpx.Client, address: str) -> None:
    response = api.get(f"{address}?fields=id,tittle,created")
    assert response.status_code == 422
    assert response.json()["error"]["details"] == [
        {"field": "fields", "message": '"tittle": It is not known here; the nearest name is title.'},
        {"field": "fields", "message": '"created": It is not known here; the nearest name is created_at.'},
    ]
    for value in ("", "id,", "id,,title", "ID", "%20id", "%00", "*", "title_folded", "x" * 5_000):
        status, code, fields = parse_error(api.get(f"{address}?fields={value}", headers={"If-Match": '"stale"'}))
        assert (status, code, {*fields}) == (422, "VALIDATION_ERROR", {"fields"}), value


ONLY_OF_THE_LIBRARY: list[dict[str, Any]] = [
    {"id": 1, "available": False, "isbn13": "9780141439518", "created_at": "2000-01-01T00:00:00.000000Z", "version": 7},
    dict.fromkeys(["id", "available", "isbn13", "created_at", "updated_at", "version"]),
    {"id": "\0", "available": [1], "version": {"title": 1.5}},
]
ADDRESSES = [
    (LIST_URL, "*/*"),
    (f"{LIST_URL}/", "*/*"),
    ("/api/books?version=2", "*/*"),
    ("/api/books", "application/vnd.library+json"),
]


def test_a_created_book_is_answered_as_it_is_read_from_then_on(api: httpx.Client) -> None:
    for address, accept in ADDRESSES:
        body = build_book()
        response = api.post(address, json=body, headers={"Accept": accept})
        created = response.json()
        assert (response.status_code, response.headers["Location"]) == (201, f"{LIST_URL}/{created['id']}")
        assert created == {**created, **body, "available": True}
        read = api.get(response.headers["Location"])
        assert (read.json(), read.headers["ETag"]) == (created, response.headers["ETag"])


def test_what_only_the_library_sets_is_ignored(api: httpx.Client, stored_book: dict[str, Any]) -> None:
    for fields in ONLY_OF_THE_LIBRARY:
        created = api.post(LIST_URL, json=build_book(**fields)).json()
        assert (created["id"] > stored_book["id"], created["created_at"] > stored_book["created_at"]) == (True, True)
        of_the_library = {"isbn13": None, "version": 1, "updated_at": created["created_at"], "available": True}
        assert created == {**created, **of_the_library}
        assert created.keys() == stored_book.keys()


STALE = '"of another time"'
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
EMMA = {"title": "Emma", "author": "J. Austen", "year": 1815, "isbn": "0-14-143958-0", "genre": "Comedy"}


def require_change(api: httpx.Client, response: httpx.Response, before: dict[str, Any], **changes: Any) -> None:
    """The response shows the book, with these changes of what was there before, and so does the address."""
    isbn13 = {"isbn13": "9780141439587"} if changes.get("isbn") == EMMA["isbn"] else {}
    expected = {**before, **changes, **isbn13, "version": before["version"] + 1}
    assert response.json() == {**expected, "updated_at": response.json()["updated_at"]}
    assert response.json()["updated_at"] > before["updated_at"]
    read = api.get(f"{LIST_URL}/{before['id']}")
    assert (read.json(), read.headers["ETag"]) == (response.json(), response.headers["ETag"])


def test_a_changed_book_is_answered_whole_and_no_other_is_changed(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    other = api.post(LIST_URL, json=build_book()).json()
    own_isbn = EMMA | {"isbn": stored_book["isbn"]}
    first = api.put(address, json=own_isbn)
    require_change(api, first, stored_book, **own_isbn)
    require_change(api, api.put(address, json=EMMA), first.json(), **EMMA)
    assert api.get(f"{LIST_URL}/{other['id']}").json() == other


def test_a_merge_patch_changes_only_the_fields_present(
    api: httpx.Client, stored_book: dict[str, Any], address: str
) -> None:
    before = stored_book
    for name, value in {**EMMA, "available": False}.items():
        response = api.patch(address, json={name: value}, headers=MERGE_PATCH)
        require_change(api, response, before, **{name: value})
        before = response.json()
    for name, value in (*dict.fromkeys((*EMMA, "available")).items(), ("available", 0), ("available", "true")):
        response = api.patch(address, json={name: value}, headers=MERGE_PATCH)
        assert parse_error(response) == (422, "VALIDATION_ERROR", [name])


def test_equal_values_are_no_change(api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str) -> None:
    # Other values of what only the library sets are ignored.
    ignored = {"id": 77, "created_at": "2000", "isbn13": None, "version": 9, "updated_at": []}
    own_values = {name: stored_book[name] for name in EMMA}
    cases = [(method, body) for method in ("PUT", "PATCH") for body in (own_values, stored_book, own_values | ignored)]
    parts: list[dict[str, Any]] = [{}, {"title": stored_book["title"]}, {"year": 1813.0}, ignored]
    for method, body in [*cases, *(("PATCH", body) for body in parts)]:
        response = api.request(method, address, json=body)
        assert (response.json(), response.headers["ETag"]) == (stored_book, etag), (method, body)


def test_a_replacement_names_each_missing_field_and_keeps_available_where_it_is_absent(
    api: httpx.Client, address: str
) -> None:
    assert parse_error(api.put(address, json={"available": True})) == (422, "VALIDATION_ERROR", [*EMMA])
    for available in (False, True):
        assert api.put(address, json={**EMMA, "available": available}).json()["available"] is available
        assert api.put(address, json=EMMA).json()["available"] is available


def test_a_deleted_book_is_gone_and_no_other(api: httpx.Client, address: str) -> None:
    other = api.post(LIST_URL, json=build_book()).json()
    # The body is ignored.
    response = api.request("DELETE", address, content=b"{", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.content, "Content-Type" in response.headers) == (204, b"", False)
    bodies = {"PUT": build_book(), "PATCH": {}}
    responses = [api.request(method, address, json=bodies.get(method)) for method in ("GET", "PUT", "PATCH", "DELETE")]
    responses.append(api.get(address.replace("/v2", "")))
    assert [(response.status_code, "Book not found" in response.text) for response in responses] == [(404, True)] * 5
    assert list_ids(api.get(LIST_URL)) == [other["id"]]


CHANGES = ("PUT", "PATCH")


def test_the_book_a_client_has_is_not_sent_again(
    api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str
) -> None:
    for value in (etag, "*", f"{STALE}, {etag}", f"W/{etag}", f"W/{STALE}, W/{etag}", f"{etag},"):
        response = api.get(address, headers={"If-None-Match": value})
        assert (value, response.status_code, response.content, response.headers["ETag"]) == (value, 304, b"", etag)
    for value in (STALE, f"W/{STALE}", "unquoted", ""):
        response = api.get(address, headers={"If-None-Match": value})
        assert (value, response.json(), response.headers["ETag"]) == (value, stored_book, etag)
    # A change by the other version counts.
    api.put(address.replace("/v2", ""), json={"title": "Emma"})
    response = api.get(address, headers={"If-None-Match": etag})
    assert (response.status_code, response.json()["title"], response.headers["ETag"] == etag) == (200, "Emma", False)


@pytest.mark.parametrize("value", ["{etag}", "*", f"{STALE}, {{etag}}"])
def test_a_book_in_the_state_asked_for_is_read_changed_and_deleted(api: httpx.Client, address: str, value: str) -> None:
    for method in ("GET", *CHANGES, "DELETE"):
        headers = {"If-Match": value.format(etag=api.get(address).headers["ETag"])}
        body = {**EMMA, "genre": method} if method in CHANGES else None
        response = api.request(method, address, json=body, headers=headers)
        assert (method, response.status_code) == (method, 204 if method == "DELETE" else 200)
    assert api.get(address).status_code == 404


def test_a_book_in_another_state_is_left_alone(
    api: httpx.Client, stored_book: dict[str, Any], address: str, etag: str
) -> None:
    stale = [STALE, f"W/{etag}", f"W/{etag}, {STALE}", "unquoted"]
    cases = [(method, "If-Match", value) for method in ("GET", *CHANGES, "DELETE") for value in stale]
    known = [etag, f"W/{etag}", "*"]
    cases += [(method, "If-None-Match", value) for method in (*CHANGES, "DELETE") for value in known]
    for method, name, value in cases:
        response = api.request(method, address, json=EMMA if method in CHANGES else None, headers={name: value})
        assert response.status_code == 412, (method, value)
    assert api.get(address).json() == stored_book


MALFORMED = (400, "MALFORMED_REQUEST", ["body"])
NO_JSON = {
    "empty": b"",
    "blank": b" \n",
    "open": b"{",
    "NaN": b'{"year": NaN}',
    "1e400": b'{"year": 1e400}',
    "NaN in an unknown member": b'{"shelf": NaN}',
    "something after": b"{} x",
    "no UTF-8": b'{"title": "\xff"}',
    "surrogate in UTF-8": b'{"title": "\xed\xa0\x80"}',
    "100,000 objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}
JSON_TYPES = ["application/json; charset=utf-8", "APPLICATION/JSON"]


def send(
    api: httpx.Client, address: str, body: bytes | list[bytes] | Callable[[], bytes], **headers: str
) -> Iterator[httpx.Response]:
    """Sends a body in each way that takes a book, in chunks if it is a list."""
    for method, way in (("POST", LIST_URL), ("PUT", address), ("PATCH", address)):
        content = iter(body) if isinstance(body, list) else body() if callable(body) else body
        yield api.request(method, way, content=content, headers=headers)


def encode(**fields: Any) -> bytes:
    return json.dumps(build_book(**fields)).encode()


def test_invalid_json_is_malformed(api: httpx.Client, stored_book: dict[str, Any], address: str) -> None:
    cases: dict[str, bytes | list[bytes]] = {**NO_JSON, "empty, in chunks": []}
    for name, body in cases.items():
        assert [parse_error(response) for response in send(api, address, body)] == [MALFORMED] * 3, name
    assert "The body is empty." in api.patch(address).text
    assert api.get(LIST_URL).json()["results"] == [stored_book]


def test_text_beyond_ascii_may_be_escaped_or_not_whatever_the_charset(api: httpx.Client, address: str) -> None:
    bodies = [encode(title="𐐨"), json.dumps(build_book(title="𐐨"), ensure_ascii=False).encode()]
    assert b"\\ud801\\udc28" in bodies[0]
    for body in bodies:
        assert api.put(address, content=body).json()["title"] == "𐐨"
    for media_type in JSON_TYPES:
        encode_anew = partial(encode, title=f"É {media_type}")
        for response in send(api, address, encode_anew, **{"Content-Type": media_type}):
            assert response.json()["title"] == f"É {media_type}"


def test_a_field_that_is_not_known_is_named_with_the_nearest(api: httpx.Client) -> None:
    body = build_book(titel="Emma", Author="Jane Austen")
    response = api.post(LIST_URL, json=body, headers={"X-Request-ID": "caller-1"})
    assert response.status_code == 422
    assert response.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "The request is not valid",
            "details": [
                {"field": "titel", "message": "It is not known here; the nearest name is title."},
                {"field": "Author", "message": "It is not known here; the nearest name is author."},
            ],
            "requestId": "caller-1",
        }
    }


def test_a_hundred_thousand_unknown_fields_are_refused_in_time(api: httpx.Client) -> None:
    names = ["title author genre " * 500, *range(100_000)]
    body = json.dumps(dict.fromkeys(names, 0), separators=(",", ":"))
    # The library runs in this thread. Its CPU time does not depend on what else the machine does.
    start_time = time.thread_time()
    response = api.post(LIST_URL, content=body)
    assert time.thread_time() - start_time < 1
    assert parse_error(response)[:2] == (422, "VALIDATION_ERROR")
    assert len(response.content) < 10_000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_all_problems_of_a_body_are_listed_together(api: httpx.Client, address: str, method: str) -> None:
    body = {"title": 123, "author": "a" * 501, "year": 19.5, "isbn": None, "genre": " ", "gener": 1}
    response = api.request(method, LIST_URL if method == "POST" else address, json=body)
    assert parse_error(response) == (422, "VALIDATION_ERROR", [*body])
