"""What a body may contain; the rules are the same for a creation and a change."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import list_locations, list_problems, parse_refusal
from tests.support.server import Service

MIB = 2**20

Send = Callable[..., httpx.Response]


@pytest.fixture(params=["POST", "PUT"])
def send(request: pytest.FixtureRequest, api: httpx.Client, book: dict[str, Any]) -> Send:
    """Sends these members, in a creation beside valid others; or this body, unchanged."""
    address = {"POST": "/api/books", "PUT": f"/api/books/{book['id']}"}[request.param]

    def send(body: bytes | Iterator[bytes] | None = None, **members: Any) -> httpx.Response:
        content = build_book(**members) if request.param == "POST" else members
        return api.request(request.param, address, content=json.dumps(content) if body is None else body)

    return send


def test_each_missing_member_is_named(api: httpx.Client) -> None:
    answer = api.post("/api/books", json={})
    assert answer.status_code == 422
    assert answer.json() == {
        "detail": [
            {"loc": ["body", name], "msg": "This field is required.", "type": "missing"}
            for name in ("title", "author", "year", "isbn", "genre")
        ]
    }


@pytest.mark.parametrize("name", ["title", "author", "year", "isbn", "genre"])
def test_no_member_of_a_creation_may_be_absent(api: httpx.Client, name: str) -> None:
    body = build_book()
    del body[name]
    answer = api.post("/api/books", json=body)
    assert (answer.status_code, list_problems(answer)) == (422, [(f"body.{name}", "missing")])
    assert api.get("/api/books").json() == []


def test_all_problems_of_a_body_are_listed_together(send: Send) -> None:
    answer = send(title=123, author="a" * 501, year=19.5, isbn=None, genre="g" * 201)
    assert answer.status_code == 422
    assert answer.json() == {
        "detail": [
            {"loc": ["body", "title"], "msg": "Input should be a valid string.", "type": "string_type"},
            {
                "loc": ["body", "author"],
                "msg": "Ensure this field has no more than 500 characters.",
                "type": "string_too_long",
            },
            {
                "loc": ["body", "year"],
                "msg": "Input should be a valid integer, got a number with a fractional part.",
                "type": "int_from_float",
            },
            {"loc": ["body", "isbn"], "msg": "Input should be a valid string.", "type": "string_type"},
            {
                "loc": ["body", "genre"],
                "msg": "Ensure this field has no more than 200 characters.",
                "type": "string_too_long",
            },
        ]
    }


def test_a_pair_of_surrogates_is_one_character(send: Send) -> None:
    body = json.dumps(build_book(title="𐐨"))
    assert "\\ud801\\udc28" in body
    assert send(body.encode()).json()["title"] == "𐐨"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="open"),
        pytest.param(b"{]", id="mismatched"),
        pytest.param(b'{"title": }', id="no value"),
        pytest.param(b"{'title': 'a'}", id="single quotes"),
        pytest.param(b'{"title": "a",}', id="comma at the end"),
        pytest.param(b'{"title": "a\nb"}', id="raw line break"),
        pytest.param(b'{"year": 01}', id="leading zero"),
        pytest.param(b'{"year": +1}', id="plus"),
        pytest.param(b'{"year": .5}', id="no digit before the point"),
        pytest.param(b'{"year": NaN}', id="NaN"),
        pytest.param(b'{"year": Infinity}', id="Infinity"),
        pytest.param(b'{"year": -Infinity}', id="-Infinity"),
        pytest.param(b'{"year": 1e400}', id="1e400"),
        pytest.param(b'{"year": -1e400}', id="-1e400"),
        pytest.param(b'{"shelf": NaN}', id="NaN in an unknown member"),
        pytest.param(b"{}{}", id="two objects"),
        pytest.param(b"{} x", id="something after"),
        pytest.param(b" \n", id="blank"),
        pytest.param(b"title=a", id="a form"),
        pytest.param(b'{"title": "\xff"}', id="no UTF-8"),
        pytest.param(b'{"title": "\xc0\x80"}', id="overlong NUL"),
        pytest.param(b'{"title": "\xed\xa0\x80"}', id="surrogate in UTF-8"),
        pytest.param('{"title": "é"}'.encode("latin-1"), id="Latin-1"),
        pytest.param('{"title": "a"}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b"[" * 100_000, id="100,000 brackets"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="100,000 brackets, closed"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="100,000 objects"),
    ],
)
def test_invalid_json_is_refused(api: httpx.Client, send: Send, book: dict[str, Any], body: bytes) -> None:
    answer = send(body)
    assert (answer.status_code, list_problems(answer)) == (422, [("body", "json_invalid")])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize("body", [b"", iter(())], ids=["of a known length", "in chunks"])
def test_a_body_must_not_be_empty(
    api: httpx.Client, send: Send, book: dict[str, Any], body: bytes | Iterator[bytes]
) -> None:
    answer = send(body)
    assert (answer.status_code, list_problems(answer)) == (422, [("body", "missing")])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize("body", [b"null", b"true", b"1984", b'"title"', b"[]", b"[{}]", b'[["title", "a"]]'])
def test_a_body_that_is_no_object_is_refused(api: httpx.Client, send: Send, book: dict[str, Any], body: bytes) -> None:
    answer = send(body)
    assert (answer.status_code, list_locations(answer)) == (422, ["body"])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize(
    "member",
    [
        pytest.param('"shelf": null', id="null"),
        pytest.param('"shelf": {"title": ["nested"]}', id="nested"),
        pytest.param('"shelf": "\\u0000\\ud800"', id="NUL and surrogate"),
        pytest.param('"\\ud800\\u0000": 1', id="a name of NUL and surrogate"),
        pytest.param('"": 1', id="a name without letters"),
        pytest.param('"non_field_errors": "x"', id="a name of the framework"),
        pytest.param(f'"shelf": {"9" * 5000}', id="5,000 digits"),
    ],
)
def test_the_value_of_an_unknown_member_does_not_matter(send: Send, member: str) -> None:
    answer = send(json.dumps(build_book(title="Emma")).replace("{", f"{{{member}, ", 1).encode())
    assert (answer.is_success, answer.json()["title"]) == (True, "Emma")


@pytest.mark.parametrize("first", ['"first"', "1", "null"])
def test_the_last_of_two_equal_members_counts(send: Send, first: str) -> None:
    answer = send(json.dumps(build_book(title="last")).replace("{", f'{{"title": {first}, ', 1).encode())
    assert answer.json()["title"] == "last"


def test_the_last_of_two_equal_members_is_validated(send: Send) -> None:
    answer = send(json.dumps(build_book(title=1)).replace("{", '{"title": "first", ', 1).encode())
    assert (answer.status_code, list_problems(answer)) == (422, [("body.title", "string_type")])


def test_a_body_may_have_one_mebibyte(send: Send) -> None:
    body = json.dumps(build_book(title="Emma")).encode().ljust(MIB)
    assert send(body).json()["title"] == "Emma"


@pytest.mark.parametrize("size", [MIB + 1, 2 * MIB])
def test_a_larger_body_is_refused(api: httpx.Client, send: Send, book: dict[str, Any], size: int) -> None:
    answer = send(json.dumps(build_book()).encode().ljust(size))
    assert parse_refusal(answer) == (413, ["detail"])
    assert api.get("/api/books").json() == [book]


def test_a_body_in_chunks_is_read(send: Send) -> None:
    body = json.dumps(build_book(title="Emma")).encode()
    answer = send(iter([body[:7], body[7:40], body[40:]]))
    assert answer.json()["title"] == "Emma"


def test_a_larger_body_in_chunks_is_refused(send: Send) -> None:
    assert parse_refusal(send(iter([b" " * MIB, b" "]))) == (413, ["detail"])


def test_the_server_refuses_a_larger_body(service: Service) -> None:
    with service.open_client() as client:
        assert parse_refusal(client.post("/api/books", content=b" " * 2 * MIB)) == (413, ["detail"])


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="missing"),
        pytest.param({"Content-Type": "application/json"}, id="JSON"),
        pytest.param({"Content-Type": "application/json; charset=utf-8"}, id="JSON with a charset"),
        pytest.param({"Content-Type": "application/json;charset=UTF-8"}, id="without a space"),
        pytest.param({"Content-Type": "APPLICATION/JSON"}, id="in capitals"),
    ],
)
def test_json_is_read(api: httpx.Client, book: dict[str, Any], headers: dict[str, str]) -> None:
    body = json.dumps(build_book(title="Émma"), ensure_ascii=False).encode()
    creation = api.post("/api/books", content=body, headers=headers)
    change = api.put(f"/api/books/{book['id']}", content='{"title": "Émma"}'.encode(), headers=headers)
    assert (creation.status_code, creation.json()["title"]) == (201, "Émma")
    assert (change.status_code, change.json()["title"]) == (200, "Émma")


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "text/json",
        "text/html",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/merge-patch+json",
        "application/octet-stream",
        "application/*",
        "json",
    ],
)
def test_another_media_type_is_refused(api: httpx.Client, book: dict[str, Any], media_type: str) -> None:
    body, headers = json.dumps(build_book()).encode(), {"Content-Type": media_type}
    creation = api.post("/api/books", content=body, headers=headers)
    change = api.put(f"/api/books/{book['id']}", content=body, headers=headers)
    assert [parse_refusal(creation), parse_refusal(change)] == [(415, ["detail"])] * 2
    assert api.get("/api/books").json() == [book]


def test_a_form_is_refused(api: httpx.Client) -> None:
    assert parse_refusal(api.post("/api/books", data=build_book())) == (415, ["detail"])
    assert parse_refusal(api.post("/api/books", data=build_book(), files={"cover": b"png"})) == (415, ["detail"])


def test_the_first_failing_check_is_answered(api: httpx.Client) -> None:
    headers, large = {"Content-Type": "text/plain"}, b" " * 2 * MIB
    unknown, malformed = "/api/books/987654321", "/api/books/abc"
    answers = [
        api.patch(unknown, content=large, headers=headers),
        api.put(unknown, content=large, headers=headers),
        api.put(unknown, content=b"{", headers=headers),
        api.put(malformed, content=b"{", headers=headers),
        api.put(unknown, content=b"{"),
        api.put(malformed, content=b"{}"),
    ]
    assert [answer.status_code for answer in answers] == [405, 413, 415, 415, 404, 422]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"title": 1, "year": "Zanzibar"}', id="wrong type"),
        pytest.param(b'{"title": "%s"}' % (b"Zanzibar" * 200), id="too long"),
        pytest.param(b'{"title": "Zanzibar\\u0000"}', id="NUL"),
        pytest.param(b'{"title": "Zanzibar\\ud800"}', id="surrogate"),
        pytest.param(b'{"Zanzibar": 1, "title": 1}', id="name"),
        pytest.param(b'"Zanzibar"', id="no object"),
        pytest.param(b'{"Zanzibar": NaN}', id="NaN"),
        pytest.param(b'{"Zanzibar"', id="malformed"),
    ],
)
def test_a_refusal_does_not_repeat_the_body(send: Send, body: bytes) -> None:
    answer = send(body)
    assert answer.status_code == 422
    assert "Zanzibar" not in answer.text


@pytest.mark.parametrize(
    "address",
    [
        "/api/books/Zanzibar",
        "/api/books?skip=Zanzibar",
        f"/api/books?author={'Zanzibar' * 100}",
        "/api/books?genre=Zanzibar%00",
    ],
)
def test_a_refusal_does_not_repeat_the_query(api: httpx.Client, address: str) -> None:
    answer = api.get(address)
    assert answer.status_code == 422
    assert "Zanzibar" not in answer.text
