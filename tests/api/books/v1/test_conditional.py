"""Conditional requests on one book (RFC 9110, 13)."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import parse_refusal
from tests.support.server import Service

STALE = '"of another time"'


@pytest.fixture
def address(book: dict[str, Any]) -> str:
    return f"/api/books/{book['id']}"


@pytest.fixture
def etag(api: httpx.Client, address: str) -> str:
    return str(api.get(address).headers["ETag"])


def test_every_answer_with_a_book_has_its_etag(api: httpx.Client) -> None:
    creation = api.post("/api/books", json=build_book())
    address = creation.headers["Location"]
    read = api.get(address)
    change = api.put(address, json={"year": 2000})
    reread = api.get(address)
    assert creation.headers["ETag"] == read.headers["ETag"]
    assert change.headers["ETag"] == reread.headers["ETag"]
    assert read.headers["ETag"] != reread.headers["ETag"]


def test_a_strong_tag_is_quoted(etag: str) -> None:
    assert etag[0] == etag[-1] == '"'


def test_two_books_have_different_etags(api: httpx.Client, etag: str) -> None:
    assert api.post("/api/books", json=build_book()).headers["ETag"] != etag


def test_no_etag_is_used_twice(api: httpx.Client, book: dict[str, Any], address: str, etag: str) -> None:
    first_change = api.put(address, json={"year": 2000}).headers["ETag"]
    second_change = api.put(address, json={"year": book["year"]}).headers["ETag"]
    assert len({etag, first_change, second_change}) == 3


@pytest.mark.parametrize("members", [[], ["title"], ["year"], ["title", "author", "year", "isbn", "genre"]])
def test_equal_values_are_no_change(
    api: httpx.Client, book: dict[str, Any], address: str, etag: str, members: list[str]
) -> None:
    answer = api.put(address, json={name: book[name] for name in members})
    assert (answer.status_code, answer.headers["ETag"]) == (200, etag)


def test_the_book_a_client_has_is_not_sent_again(api: httpx.Client, address: str, etag: str) -> None:
    answer = api.get(address, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", etag)


@pytest.mark.parametrize("value", ["W/{etag}", "*", f"{STALE}, {{etag}}", f"W/{STALE}, W/{{etag}}", "{etag},"])
def test_any_of_several_etags_may_match(api: httpx.Client, address: str, etag: str, value: str) -> None:
    assert api.get(address, headers={"If-None-Match": value.format(etag=etag)}).status_code == 304


@pytest.mark.parametrize("value", [STALE, f"W/{STALE}", "unquoted", ""])
def test_a_book_in_another_state_is_sent(
    api: httpx.Client, book: dict[str, Any], address: str, etag: str, value: str
) -> None:
    answer = api.get(address, headers={"If-None-Match": value})
    assert (answer.status_code, answer.json(), answer.headers["ETag"]) == (200, book, etag)


def test_a_changed_book_is_sent_again(api: httpx.Client, book: dict[str, Any], address: str, etag: str) -> None:
    api.put(address, json={"year": 2000})
    answer = api.get(address, headers={"If-None-Match": etag})
    assert (answer.status_code, answer.json()) == (200, {**book, "year": 2000})


@pytest.mark.parametrize("value", ["{etag}", "*", f"{STALE}, {{etag}}"])
def test_a_book_in_the_state_asked_for_is_changed(api: httpx.Client, address: str, etag: str, value: str) -> None:
    headers = {"If-Match": value.format(etag=etag)}
    assert api.get(address, headers=headers).status_code == 200
    assert api.put(address, json={"year": 2000}, headers=headers).json()["year"] == 2000


@pytest.mark.parametrize("value", ["{etag}", "*", f"{STALE}, {{etag}}"])
def test_a_book_in_the_state_asked_for_is_deleted(api: httpx.Client, address: str, etag: str, value: str) -> None:
    assert api.delete(address, headers={"If-Match": value.format(etag=etag)}).status_code == 200
    assert api.get(address).status_code == 404


@pytest.mark.parametrize("value", [STALE, "W/{etag}", f"W/{{etag}}, {STALE}", "unquoted"])
def test_a_book_in_another_state_is_left_alone(
    api: httpx.Client, book: dict[str, Any], address: str, etag: str, value: str
) -> None:
    headers = {"If-Match": value.format(etag=etag)}
    answers = [
        api.get(address, headers=headers),
        api.put(address, json={"year": 2000}, headers=headers),
        api.delete(address, headers=headers),
    ]
    assert [parse_refusal(answer) for answer in answers] == [(412, ["detail"])] * 3
    read = api.get(address)
    assert (read.json(), read.headers["ETag"]) == (book, etag)


@pytest.mark.parametrize("value", ["{etag}", "W/{etag}", "*"])
def test_a_change_may_be_for_other_states_only(
    api: httpx.Client, book: dict[str, Any], address: str, etag: str, value: str
) -> None:
    headers = {"If-None-Match": value.format(etag=etag)}
    answers = [api.put(address, json={"year": 2000}, headers=headers), api.delete(address, headers=headers)]
    assert [parse_refusal(answer) for answer in answers] == [(412, ["detail"])] * 2
    assert api.get(address).json() == book


def test_the_state_before_a_change_is_refused_after_it(api: httpx.Client, address: str, etag: str) -> None:
    first = api.put(address, json={"year": 2000}, headers={"If-Match": etag})
    second = api.put(address, json={"year": 3000}, headers={"If-Match": etag})
    third = api.put(address, json={"year": 3000}, headers={"If-Match": first.headers["ETag"]})
    assert [first.status_code, second.status_code, third.status_code] == [200, 412, 200]


@pytest.mark.parametrize("headers", [{"If-Match": "*"}, {"If-Match": STALE}, {"If-None-Match": "*"}])
def test_an_unknown_book_is_in_no_state(api: httpx.Client, headers: dict[str, str]) -> None:
    answers = [
        api.get("/api/books/987654321", headers=headers),
        api.put("/api/books/987654321", json={}, headers=headers),
        api.delete("/api/books/987654321", headers=headers),
    ]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(404, {"detail": "Book not found"})] * 3


def test_a_bad_body_outranks_the_state(api: httpx.Client, address: str) -> None:
    assert api.put(address, json={"year": "1984"}, headers={"If-Match": STALE}).status_code == 422


def test_the_state_outranks_an_isbn_in_use(api: httpx.Client, address: str) -> None:
    other = api.post("/api/books", json=build_book()).json()
    answer = api.put(address, json={"isbn": other["isbn"]}, headers={"If-Match": STALE})
    assert answer.status_code == 412


def test_the_server_sends_a_book_once(service: Service) -> None:
    with service.open_client() as client:
        read = client.get("/api/books/2")
        headers = {"If-None-Match": read.headers["ETag"]}
        answers = [client.get("/api/books/2", headers=headers), client.head("/api/books/2", headers=headers)]
    assert [(answer.status_code, answer.content) for answer in answers] == [(304, b"")] * 2
