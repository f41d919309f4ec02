"""What a body may contain, in both versions; the rules are the same for a creation and a change."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

from tests.support.api_versions import VERSION_1, APIVersion, with_each_version
from tests.support.books import build_book

MIB = 2**20
NO_JSON = {
    "open": b"{",
    "mismatched": b"{]",
    "no value": b'{"title": }',
    "single quotes": b"{'title': 'a'}",
    "comma at the end": b'{"title": "a",}',
    "raw line break": b'{"title": "a\nb"}',
    "leading zero": b'{"year": 01}',
    "plus": b'{"year": +1}',
    "no digit before the point": b'{"year": .5}',
    "NaN": b'{"year": NaN}',
    "Infinity": b'{"year": Infinity}',
    "-Infinity": b'{"year": -Infinity}',
    "1e400": b'{"year": 1e400}',
    "-1e400": b'{"year": -1e400}',
    "NaN in an unknown member": b'{"shelf": NaN}',
    "two objects": b"{}{}",
    "something after": b"{} x",
    "blank": b" \n",
    "a form": b"title=a",
    "no UTF-8": b'{"title": "\xff"}',
    "overlong NUL": b'{"title": "\xc0\x80"}',
    "surrogate in UTF-8": b'{"title": "\xed\xa0\x80"}',
    "Latin-1": '{"title": "é"}'.encode("latin-1"),
    "UTF-16": '{"title": "a"}'.encode("utf-16"),
    "100,000 brackets": b"[" * 100_000,
    "100,000 brackets, closed": b"[" * 100_000 + b"]" * 100_000,
    "100,000 objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}
NO_OBJECTS = [b"null", b"true", b"1984", b'"title"', b"[]", b"[{}]", b'[["title", "a"]]']
JSON_TYPES = ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8"]
JSON_TYPES += ["APPLICATION/JSON"]
OTHER_TYPES = [
    "text/plain",
    "text/json",
    "text/html",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "application/*",
    "json",
]

pytestmark = with_each_version


def list_ways(version: APIVersion, address: str) -> list[tuple[str, str]]:
    """The methods and addresses that take a book."""
    return [("POST", version.books), *((method, address) for method in version.changes)]


def send(api: httpx.Client, version: APIVersion, address: str, body: bytes | list[bytes]) -> Iterator[httpx.Response]:
    """Sends a body in each way, in chunks if it is a list."""
    for method, way in list_ways(version, address):
        yield api.request(method, way, content=iter(body) if isinstance(body, list) else body)


def encode(**fields: Any) -> bytes:
    return json.dumps(build_book(**fields)).encode()


def test_invalid_json_is_malformed(api: httpx.Client, version: APIVersion, stored_book: Any, address: str) -> None:
    expected = (422, ["body"]) if version is VERSION_1 else (400, ["body"])
    bodies: dict[str, bytes | list[bytes]] = {**NO_JSON, "empty": b"", "empty, in chunks": []}
    for name, body in bodies.items():
        for response in send(api, version, address, body):
            assert (name, version.parse_error(response)) == (name, expected)
            if version is VERSION_1:
                kind = "missing" if name.startswith("empty") else "json_invalid"
                assert response.json()["detail"][0]["type"] == kind
    assert version.list_books(api) == [stored_book]


def test_a_body_that_is_no_object_is_refused(
    api: httpx.Client, version: APIVersion, stored_book: Any, address: str
) -> None:
    for body in NO_OBJECTS:
        for response in send(api, version, address, body):
            assert (body, version.parse_error(response)) == (body, (422, ["body"]))
    assert version.list_books(api) == [stored_book]


def test_each_missing_field_is_named(api: httpx.Client, version: APIVersion) -> None:
    names = ["title", "author", "year", "isbn", "genre"]
    assert version.parse_error(api.post(version.books, json={})) == (422, names)
    for name in names:
        body = build_book()
        del body[name]
        assert version.parse_error(api.post(version.books, json=body)) == (422, [name])
    assert version.list_books(api) == []


def test_the_last_of_two_equal_fields_counts(api: httpx.Client, version: APIVersion, address: str) -> None:
    for first in ('"first"', "1", "null"):
        for method, way in list_ways(version, address):
            body = encode(title="last").replace(b"{", f'{{"title": {first}, '.encode(), 1)
            assert api.request(method, way, content=body).json()["title"] == "last"
    responses = send(api, version, address, encode(title=1).replace(b"{", b'{"title": "first", ', 1))
    assert {version.parse_error(response)[0] for response in responses} == {422}


def test_a_pair_of_surrogates_is_one_character(api: httpx.Client, version: APIVersion, address: str) -> None:
    for method, way in list_ways(version, address):
        body = encode(title="𐐨")
        assert b"\\ud801\\udc28" in body
        assert api.request(method, way, content=body).json()["title"] == "𐐨"


def test_a_body_may_have_one_mebibyte(api: httpx.Client, version: APIVersion, address: str) -> None:
    for method, way in list_ways(version, address):
        assert api.request(method, way, content=encode(title="Emma").ljust(MIB)).json()["title"] == "Emma"
        body = encode(title="Emma")
        chunks = iter([body[:7], body[7:40], body[40:]])
        assert api.request(method, way, content=chunks).json()["title"] == "Emma"
    before = version.list_books(api)
    bodies: list[bytes | list[bytes]] = [encode().ljust(MIB + 1), encode().ljust(2 * MIB), [b" " * MIB, b" "]]
    for large in bodies:
        responses = send(api, version, address, large)
        assert {version.parse_error(response)[0] for response in responses} == {413}
    assert version.list_books(api) == before


def test_json_is_read_whatever_its_charset(api: httpx.Client, version: APIVersion, address: str) -> None:
    for headers in ({}, *({"Content-Type": media_type} for media_type in JSON_TYPES)):
        for method, way in list_ways(version, address):
            body = json.dumps(build_book(title="Émma"), ensure_ascii=False).encode()
            response = api.request(method, way, content=body, headers=headers)
            assert (response.is_success, response.json()["title"]) == (True, "Émma"), (method, headers)


def test_another_media_type_is_refused(api: httpx.Client, version: APIVersion, stored_book: Any, address: str) -> None:
    ways = [*list_ways(version, address), *([] if version is VERSION_1 else [("POST", f"{version.books}/bulk")])]
    cases = [(way, media_type) for way in ways for media_type in OTHER_TYPES]
    cases += [(way, "application/merge-patch+json") for way in ways if way[0] != "PATCH"]
    for (method, way), media_type in cases:
        response = api.request(method, way, content=encode(), headers={"Content-Type": media_type})
        assert (method, media_type, version.parse_error(response)) == (method, media_type, (415, []))
    for files in (None, {"cover": b"png"}):
        assert api.post(version.books, data=build_book(), files=files).status_code == 415
    assert version.list_books(api) == [stored_book]
