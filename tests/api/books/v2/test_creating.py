"""POST /api/v2/books, and what the body of any write of one book may contain."""

import json
import time
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.books import build_book
from tests.support.pages import parse_error
from tests.support.strategies import bodies, hypothesis_settings

BOOKS = "/api/v2/books"
MIB = 2**20


@pytest.fixture
def book(api: httpx.Client) -> dict[str, Any]:
    """A stored book, as version 2 answered its creation."""
    created: dict[str, Any] = api.post(BOOKS, json=build_book()).json()
    return created


def list_books(api: httpx.Client) -> list[dict[str, Any]]:
    """The books of the library, up to 100."""
    books: list[dict[str, Any]] = api.get(BOOKS).json()["results"]
    return books


def test_a_book_may_be_sent_as_it_was_read(api: httpx.Client, book: dict[str, Any]) -> None:
    api.delete(f"{BOOKS}/{book['id']}")
    response = api.post(BOOKS, json=book)
    assert (response.status_code, response.json()["isbn"]) == (201, book["isbn"])


def test_a_field_that_is_not_known_is_named_with_the_nearest(api: httpx.Client) -> None:
    response = api.post(
        BOOKS, json=build_book(titel="Emma", Author="Jane Austen"), headers={"X-Request-ID": "caller-1"}
    )
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
    assert list_books(api) == []


def test_every_unknown_field_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    for name in ("", "\0", "\ud800", "book_id", "title_folded", "non_field_errors", "n" * 10_000):
        response = api.post(BOOKS, content=json.dumps(build_book(**{name: 1})))
        assert parse_error(response)[:2] == (422, "VALIDATION_ERROR"), name
        assert len(response.json()["error"]["details"]) == 1
    assert list_books(api) == [book]


def test_a_hundred_thousand_unknown_fields_are_refused_in_time(api: httpx.Client) -> None:
    body = json.dumps({str(number): 0 for number in range(100_000)}, separators=(",", ":"))
    # The library runs in this thread. Its CPU time does not depend on what else the machine does.
    start_time = time.thread_time()
    response = api.post(BOOKS, content=body)
    assert time.thread_time() - start_time < 1
    assert parse_error(response)[:2] == (422, "VALIDATION_ERROR")
    assert len(response.content) < 10_000


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_all_problems_of_a_body_are_listed_together(api: httpx.Client, book: dict[str, Any], method: str) -> None:
    body = {"title": 123, "author": "a" * 501, "year": 19.5, "isbn": None, "genre": " ", "gener": 1}
    response = api.request(method, BOOKS if method == "POST" else f"{BOOKS}/{book['id']}", json=body)
    assert parse_error(response) == (422, "VALIDATION_ERROR", [*body])
    assert [detail["message"] for detail in response.json()["error"]["details"]] == [
        "Input should be a valid string.",
        "Ensure this field has no more than 500 characters.",
        "Input should be a valid integer, got a number with a fractional part.",
        "Input should be a valid string.",
        "This field may not be blank.",
        "It is not known here; the nearest name is genre.",
    ]


def test_a_second_book_of_one_isbn_is_answered_with_a_link_to_the_first(
    api: httpx.Client, book: dict[str, Any]
) -> None:
    response = api.post(BOOKS, json=build_book(title="Another", isbn=book["isbn"]))
    url = response.headers["Link"].removeprefix("<").removesuffix('>; rel="related"')
    assert response.status_code == 409
    assert response.json() == {
        "error": {
            "code": "CONFLICT",
            "message": "Another book has this isbn",
            "details": [{"field": "isbn", "message": f"The book at {url} has it"}],
            "requestId": response.headers["X-Request-ID"],
        }
    }
    assert url.endswith(f"{BOOKS}/{book['id']}")
    assert list_books(api) == [book]


def test_links_are_built_from_the_public_address(api: httpx.Client, book: dict[str, Any], settings: Any) -> None:
    settings.PUBLIC_URL = "https://library.example"
    response = api.post(BOOKS, json=build_book(isbn=book["isbn"]), headers={"Host": "localhost"})
    assert response.headers["Link"] == f'<https://library.example{BOOKS}/{book["id"]}>; rel="related"'


def test_the_first_failing_check_is_answered(api: httpx.Client, book: dict[str, Any]) -> None:
    text_headers, large_body = {"Content-Type": "text/plain"}, b" " * 2 * MIB
    double = json.dumps(build_book(isbn=book["isbn"], year="1984")).encode()
    responses = [
        api.patch(f"{BOOKS}?shelf=1", content=large_body, headers=text_headers),
        api.post("/api/v2/books?version=9", content=large_body, headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", content=large_body, headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", content=b"{", headers=text_headers),
        api.post(f"{BOOKS}?shelf=1", json=build_book()),
        api.post(BOOKS, content=double),
    ]
    assert [parse_error(response)[:2] for response in responses] == [
        (405, "METHOD_NOT_ALLOWED"),
        (400, "UNSUPPORTED_VERSION"),
        (413, "PAYLOAD_TOO_LARGE"),
        (415, "UNSUPPORTED_MEDIA_TYPE"),
        (400, "UNKNOWN_PARAMETER"),
        (422, "VALIDATION_ERROR"),
    ]


fields = st.fixed_dictionaries(
    {
        "title": st.text(max_size=70),
        "author": st.text(max_size=70),
        "year": st.integers(-(2**31), 2**31 - 1) | st.integers(-800, 2100).map(float),
        "isbn": st.text(max_size=70),
        "genre": st.text(max_size=70),
    }
)


@hypothesis_settings
@given(body=fields)
def test_accepted_values_are_stored_unchanged(api: httpx.Client, book: dict[str, Any], body: dict[str, Any]) -> None:
    replacement = {**body, "isbn": book["isbn"]}
    creation, change = api.post(BOOKS, json=body), api.put(f"{BOOKS}/{book['id']}", json=replacement)
    assert creation.status_code in (201, 409, 422)
    assert change.status_code in (200, 422)
    for response, values in [(creation, body), (change, replacement)]:
        if response.is_success:
            stored = api.get(f"{BOOKS}/{response.json()['id']}").json()
            assert {name: stored[name] for name in values} == values


@hypothesis_settings
@given(body=bodies)
def test_any_json_may_be_sent(api: httpx.Client, book: dict[str, Any], body: object) -> None:
    content = json.dumps(body)
    for method, address in [("POST", BOOKS), ("PUT", f"{BOOKS}/{book['id']}"), ("PATCH", f"{BOOKS}/{book['id']}")]:
        response = api.request(method, address, content=content)
        assert response.status_code in (200, 201, 400, 409, 422)
        assert response.is_success or parse_error(response)[1] in ("MALFORMED_REQUEST", "CONFLICT", "VALIDATION_ERROR")
