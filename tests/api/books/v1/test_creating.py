"""POST /api/books."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import parse_refusal
from tests.support.server import serve_library


def test_a_created_book_is_answered_whole(api: httpx.Client) -> None:
    answer = api.post("/api/books", json=build_book(isbn="9780141439518"))
    created_book = answer.json()
    assert answer.status_code == 201
    assert created_book == {
        "id": created_book["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created_book["created_at"],
    }
    assert answer.headers["Location"] == f"/api/books/{created_book['id']}"
    assert api.get(answer.headers["Location"]).json() == created_book


@pytest.mark.parametrize("address", ["/api/books", "/api/books/", "/api/books?format=xml"])
def test_the_location_of_a_new_book_is_always_the_same_address(api: httpx.Client, address: str) -> None:
    answer = api.post(address, json=build_book())
    assert answer.headers["Location"] == f"/api/books/{answer.json()['id']}"


def test_members_that_only_the_library_sets_are_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    body = build_book(id=book["id"], available=False, created_at="2000-01-01T00:00:00.000000", version=7, shelf=None)
    created_book = api.post("/api/books", json=body).json()
    assert created_book["id"] != book["id"]
    assert created_book["available"] is True
    assert created_book["created_at"] >= book["created_at"]
    assert "shelf" not in created_book
    assert api.get(f"/api/books/{created_book['id']}").json() == created_book


def test_the_time_of_creation_is_in_utc(api: httpx.Client) -> None:
    before = datetime.now(UTC).replace(tzinfo=None)
    created_at = api.post("/api/books", json=build_book()).json()["created_at"]
    after = datetime.now(UTC).replace(tzinfo=None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", created_at)
    assert before <= datetime.fromisoformat(created_at) <= after


def test_the_time_of_creation_is_in_utc_on_a_server_in_tokyo(tmp_path: Path) -> None:
    with serve_library(tmp_path, TZ="Asia/Tokyo", PGTZ="Asia/Tokyo") as service, service.open_client() as client:
        before = datetime.now(UTC).replace(tzinfo=None)
        created_book = client.post("/api/books", json=build_book()).json()
        after = datetime.now(UTC).replace(tzinfo=None)
        read = client.get(f"/api/books/{created_book['id']}").json()
    assert before <= datetime.fromisoformat(created_book["created_at"]) <= after
    assert read == created_book


def test_the_time_of_creation_is_the_same_in_every_answer(api: httpx.Client) -> None:
    created_book = api.post("/api/books", json=build_book()).json()
    address = f"/api/books/{created_book['id']}"
    books = [
        api.get(address).json(),
        api.put(address, json={"year": 2000}).json(),
        api.get(address).json(),
        api.get("/api/books").json()[-1],
    ]
    assert [book["created_at"] for book in books] == [created_book["created_at"]] * 4


def test_a_second_book_of_one_isbn_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.post("/api/books", json=build_book(title="Another", isbn=book["isbn"]))
    assert parse_refusal(answer) == (409, ["detail"])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("080442957x", "080442957X", id="case"),
        pytest.param("0804429573", "080-442-957-3", id="hyphens"),
        pytest.param("0804429573", " 0804429573", id="space before"),
        pytest.param("0804429573", "0804429573 ", id="space after"),
        pytest.param("\u00e9", "e\u0301", id="composed and decomposed"),
        pytest.param("1", "١", id="digits of two scripts"),
        pytest.param("", " ", id="empty and blank"),
    ],
)
def test_isbns_that_differ_in_any_character_are_different(api: httpx.Client, first: str, second: str) -> None:
    answers = [api.post("/api/books", json=build_book(isbn=isbn)) for isbn in (first, second, first, second)]
    assert [answer.status_code for answer in answers] == [201, 201, 409, 409]
    assert [book["isbn"] for book in api.get("/api/books").json()] == [first, second]
