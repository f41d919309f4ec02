"""POST /api/v2/books, and what the body of any write of one book may contain."""

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.books import build_book
from tests.support.pages import parse_error
from tests.support.server import Service
from tests.support.strategies import bodies, hypothesis_settings

BOOKS = "/api/v2/books"
MIB = 2**20

Send = Callable[..., httpx.Response]


@pytest.fixture
def book(api: httpx.Client) -> dict[str, Any]:
    """A stored book, as version 2 answered its creation."""
    created: dict[str, Any] = api.post(BOOKS, json=build_book()).json()
    return created


@pytest.fixture(params=["POST", "PUT", "PATCH"])
def send(request: pytest.FixtureRequest, api: httpx.Client, book: dict[str, Any]) -> Send:
    """Sends these members, in a whole book beside valid others; or this body, unchanged."""
    address = BOOKS if request.param == "POST" else f"{BOOKS}/{book['id']}"

    def send(body: bytes | Iterator[bytes] | None = None, **members: Any) -> httpx.Response:
        content = members if request.param == "PATCH" else build_book(**members)
        return api.request(request.param, address, content=json.dumps(content) if body is None else body)

    return send


def list_books(api: httpx.Client) -> list[dict[str, Any]]:
    """The books of the library, up to 100."""
    books: list[dict[str, Any]] = api.get(BOOKS).json()["results"]
    return books


def test_a_created_book_is_answered_whole(api: httpx.Client) -> None:
    answer = api.post(BOOKS, json=build_book(isbn="0-14-143951-3"))
    created_book = answer.json()
    assert answer.status_code == 201
    assert created_book == {
        "id": created_book["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "0-14-143951-3",
        "isbn13": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created_book["created_at"],
        "updated_at": created_book["created_at"],
        "version": 1,
    }
    assert answer.headers["Location"] == f"{BOOKS}/{created_book['id']}"
    read = api.get(answer.headers["Location"])
    assert (read.json(), read.headers["ETag"]) == (created_book, answer.headers["ETag"])


def test_the_time_of_creation_is_in_utc(api: httpx.Client) -> None:
    before = datetime.now(UTC)
    created_at = api.post(BOOKS, json=build_book()).json()["created_at"]
    after = datetime.now(UTC)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", created_at)
    assert before <= datetime.fromisoformat(created_at) <= after


@pytest.mark.parametrize(
    ("address", "accept"),
    [
        (BOOKS, "*/*"),
        (f"{BOOKS}/", "*/*"),
        ("/api/books?version=2", "*/*"),
        ("/api/books", "application/vnd.library.v2+json"),
        ("/api/books", "application/vnd.library+json"),
    ],
)
def test_the_location_of_a_new_book_is_always_the_same_address(api: httpx.Client, address: str, accept: str) -> None:
    answer = api.post(address, json=build_book(), headers={"Accept": accept})
    assert answer.headers["Location"] == f"{BOOKS}/{answer.json()['id']}"
    assert api.get(answer.headers["Location"]).json() == answer.json()


@pytest.mark.parametrize(
    "members",
    [
        pytest.param(
            {
                "id": 1,
                "available": False,
                "isbn13": "9780141439518",
                "created_at": "2000-01-01T00:00:00.000000Z",
                "updated_at": "2000-01-01T00:00:00.000000Z",
                "version": 7,
            },
            id="as an answer has them",
        ),
        pytest.param(dict.fromkeys(["id", "available", "isbn13", "created_at", "updated_at", "version"]), id="null"),
        pytest.param({"id": "\0", "available": [1], "version": {"title": 1.5}}, id="of other types"),
    ],
)
def test_what_only_the_library_sets_is_ignored(
    api: httpx.Client, book: dict[str, Any], members: dict[str, Any]
) -> None:
    created_book = api.post(BOOKS, json=build_book(**members)).json()
    assert (created_book["available"], created_book["isbn13"], created_book["version"]) == (True, None, 1)
    assert created_book["id"] > book["id"]
    assert created_book["created_at"] == created_book["updated_at"] > book["created_at"]
    assert list_books(api) == [book, created_book]


def test_a_book_may_be_sent_as_it_was_read(api: httpx.Client, book: dict[str, Any]) -> None:
    api.delete(f"{BOOKS}/{book['id']}")
    answer = api.post(BOOKS, json=book)
    assert (answer.status_code, answer.json()["isbn"]) == (201, book["isbn"])


def test_a_member_that_is_not_known_is_named_with_the_nearest(api: httpx.Client) -> None:
    answer = api.post(BOOKS, json=build_book(titel="Emma", Author="Jane Austen"), headers={"X-Request-ID": "caller-1"})
    assert answer.status_code == 422
    assert answer.json() == {
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
    assert list_books(api) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="without letters"),
        pytest.param("\0", id="NUL"),
        pytest.param("\ud800", id="surrogate"),
        pytest.param("book_id", id="of the path"),
        pytest.param("title_folded", id="of a column"),
        pytest.param("non_field_errors", id="of the framework"),
        pytest.param("n" * 10_000, id="long"),
    ],
)
def test_every_unknown_member_is_refused(api: httpx.Client, book: dict[str, Any], send: Send, name: str) -> None:
    answer = send(**{name: 1})
    assert parse_error(answer)[:2] == (422, "VALIDATION_ERROR")
    assert len(answer.json()["error"]["details"]) == 1
    assert list_books(api) == [book]


def test_a_hundred_thousand_unknown_members_are_refused_in_time(send: Send) -> None:
    body = json.dumps({str(number): 0 for number in range(100_000)}, separators=(",", ":"))
    # The library runs in this thread. Its CPU time does not depend on what else the machine does.
    start_time = time.thread_time()
    answer = send(body.encode())
    assert time.thread_time() - start_time < 1
    assert parse_error(answer)[:2] == (422, "VALIDATION_ERROR")
    assert len(answer.content) < 10_000


def test_all_problems_of_a_body_are_listed_together(send: Send) -> None:
    answer = send(title=123, author="a" * 501, year=19.5, isbn=None, genre=" ", gener=1)
    assert answer.status_code == 422
    assert answer.json() == {
        "error": {
            "code": "VALIDATION_ERROR",
            "message": "The request is not valid",
            "details": [
                {"field": "title", "message": "Input should be a valid string."},
                {"field": "author", "message": "Ensure this field has no more than 500 characters."},
                {"field": "year", "message": "Input should be a valid integer, got a number with a fractional part."},
                {"field": "isbn", "message": "Input should be a valid string."},
                {"field": "genre", "message": "This field may not be blank."},
                {"field": "gener", "message": "It is not known here; the nearest name is genre."},
            ],
            "requestId": answer.headers["X-Request-ID"],
        }
    }


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="open"),
        pytest.param(b'{"title": "a",}', id="comma at the end"),
        pytest.param(b'{"year": 01}', id="leading zero"),
        pytest.param(b'{"year": NaN}', id="NaN"),
        pytest.param(b'{"year": 1e400}', id="1e400"),
        pytest.param(b"{}{}", id="two objects"),
        pytest.param(b" \n", id="blank"),
        pytest.param(b"title=a", id="a form"),
        pytest.param(b'{"title": "\xff"}', id="no UTF-8"),
        pytest.param('{"title": "a"}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b"[" * 100_000, id="100,000 brackets"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="100,000 objects"),
        pytest.param(b"", id="empty"),
        pytest.param(iter(()), id="empty, in chunks"),
    ],
)
def test_invalid_json_is_malformed(
    api: httpx.Client, book: dict[str, Any], send: Send, body: bytes | Iterator[bytes]
) -> None:
    assert parse_error(send(body)) == (400, "MALFORMED_REQUEST", ["body"])
    assert list_books(api) == [book]


@pytest.mark.parametrize("body", [b"null", b"true", b"1984", b'"title"', b"[]", b"[{}]"])
def test_a_body_that_is_no_object_is_refused(api: httpx.Client, book: dict[str, Any], send: Send, body: bytes) -> None:
    assert parse_error(send(body)) == (422, "VALIDATION_ERROR", ["body"])
    assert list_books(api) == [book]


def test_a_body_may_have_one_mebibyte(api: httpx.Client, send: Send) -> None:
    body = json.dumps(build_book(title="Emma")).encode()
    assert send(body.ljust(MIB)).json()["title"] == "Emma"
    before = list_books(api)
    assert parse_error(send(body.ljust(MIB + 1))) == (413, "PAYLOAD_TOO_LARGE", [])
    assert list_books(api) == before


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "application/*", "json"])
def test_another_media_type_is_refused(api: httpx.Client, book: dict[str, Any], media_type: str) -> None:
    body, headers = json.dumps(build_book()).encode(), {"Content-Type": media_type}
    answers = [
        api.request(method, address, content=body, headers=headers)
        for method, address in [
            ("POST", BOOKS),
            ("PUT", f"{BOOKS}/{book['id']}"),
            ("PATCH", f"{BOOKS}/{book['id']}"),
            ("POST", f"{BOOKS}/bulk"),
        ]
    ]
    assert [parse_error(answer) for answer in answers] == [(415, "UNSUPPORTED_MEDIA_TYPE", [])] * 4
    assert list_books(api) == [book]


def test_a_second_book_of_one_isbn_is_answered_with_a_link_to_the_first(
    api: httpx.Client, book: dict[str, Any]
) -> None:
    answer = api.post(BOOKS, json=build_book(title="Another", isbn=book["isbn"]))
    url = answer.headers["Link"].removeprefix("<").removesuffix('>; rel="related"')
    assert answer.status_code == 409
    assert answer.json() == {
        "error": {
            "code": "CONFLICT",
            "message": "Another book has this isbn",
            "details": [{"field": "isbn", "message": f"The book at {url} has it"}],
            "requestId": answer.headers["X-Request-ID"],
        }
    }
    assert url.endswith(f"{BOOKS}/{book['id']}")
    assert list_books(api) == [book]


def test_links_are_built_from_the_public_address(api: httpx.Client, book: dict[str, Any], settings: Any) -> None:
    settings.PUBLIC_URL = "https://library.example"
    answer = api.post(BOOKS, json=build_book(isbn=book["isbn"]), headers={"Host": "localhost"})
    assert answer.headers["Link"] == f'<https://library.example{BOOKS}/{book["id"]}>; rel="related"'


def test_isbns_that_differ_in_any_character_are_different(api: httpx.Client) -> None:
    isbns = ["0-14-143951-3", "0141439513", "9780141439518"]
    answers = [api.post(BOOKS, json=build_book(isbn=isbn)) for isbn in isbns]
    assert [answer.status_code for answer in answers] == [201] * 3
    assert {answer.json()["isbn13"] for answer in answers} == {"9780141439518"}


def test_the_first_failing_check_is_answered(api: httpx.Client, book: dict[str, Any]) -> None:
    text_headers, large_body = {"Content-Type": "text/plain"}, b" " * 2 * MIB
    double = json.dumps(build_book(isbn=book["isbn"], year="1984")).encode()
    answers = [
        api.patch(f"{BOOKS}?shelf=1", content=large_body, headers=text_headers),
        api.post("/api/v2/books?version=9", content=large_body, headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", content=large_body, headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", content=b"{", headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", json=build_book()),
        api.post(BOOKS, content=double),
    ]
    assert [parse_error(answer)[:2] for answer in answers] == [
        (405, "METHOD_NOT_ALLOWED"),
        (400, "UNSUPPORTED_VERSION"),
        (413, "PAYLOAD_TOO_LARGE"),
        (415, "UNSUPPORTED_MEDIA_TYPE"),
        (400, "UNKNOWN_PARAMETER"),
        (422, "VALIDATION_ERROR"),
    ]


def test_the_server_answers_a_creation_the_same_way(service: Service) -> None:
    with service.open_client() as client:
        creation = client.post(BOOKS, json=build_book(isbn="served in version 2"))
        conflict = client.post(BOOKS, json=build_book(isbn="served in version 2"))
        read = client.get(creation.headers["Location"])
    assert (creation.status_code, creation.json(), creation.headers["ETag"]) == (201, read.json(), read.headers["ETag"])
    assert parse_error(conflict) == (409, "CONFLICT", ["isbn"])


members = st.fixed_dictionaries(
    {
        "title": st.text(max_size=70),
        "author": st.text(max_size=70),
        "year": st.integers(-(2**31), 2**31 - 1) | st.integers(-800, 2100).map(float),
        "isbn": st.text(max_size=70),
        "genre": st.text(max_size=70),
    }
)


@hypothesis_settings
@given(body=members)
def test_accepted_values_are_stored_unchanged(api: httpx.Client, book: dict[str, Any], body: dict[str, Any]) -> None:
    replacement = {**body, "isbn": book["isbn"]}
    creation, change = api.post(BOOKS, json=body), api.put(f"{BOOKS}/{book['id']}", json=replacement)
    assert creation.status_code in (201, 409, 422)
    assert change.status_code in (200, 422)
    for answer, values in [(creation, body), (change, replacement)]:
        if answer.is_success:
            stored = api.get(f"{BOOKS}/{answer.json()['id']}").json()
            assert {name: stored[name] for name in values} == values


@hypothesis_settings
@given(body=bodies)
def test_any_json_may_be_sent(api: httpx.Client, book: dict[str, Any], body: object) -> None:
    content = json.dumps(body)
    for method, address in [("POST", BOOKS), ("PUT", f"{BOOKS}/{book['id']}"), ("PATCH", f"{BOOKS}/{book['id']}")]:
        answer = api.request(method, address, content=content)
        assert answer.status_code in (200, 201, 400, 409, 422)
        assert answer.is_success or parse_error(answer)[1] in ("MALFORMED_REQUEST", "CONFLICT", "VALIDATION_ERROR")
