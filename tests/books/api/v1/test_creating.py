"""POST /api/books."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.books import new_book
from tests.support.responses import refusal
from tests.support.serving import serving


def test_a_created_book_is_answered_whole(api: httpx.Client) -> None:
    answer = api.post("/api/books", json=new_book(isbn="9780141439518"))
    created = answer.json()
    assert answer.status_code == 201
    assert created == {
        "id": created["id"],
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "9780141439518",
        "genre": "Novel",
        "available": True,
        "created_at": created["created_at"],
    }
    assert answer.headers["Location"] == f"/api/books/{created['id']}"
    assert api.get(answer.headers["Location"]).json() == created


@pytest.mark.parametrize("address", ["/api/books", "/api/books/", "/api/books?format=xml"])
def test_the_location_of_a_new_book_is_always_the_same_address(api: httpx.Client, address: str) -> None:
    answer = api.post(address, json=new_book())
    assert answer.headers["Location"] == f"/api/books/{answer.json()['id']}"


def test_members_that_are_not_of_the_body_are_ignored(api: httpx.Client, book: dict[str, Any]) -> None:
    body = new_book(id=book["id"], available=False, created_at="2000-01-01T00:00:00.000000", version=7, shelf=None)
    created = api.post("/api/books", json=body).json()
    assert created["id"] != book["id"]
    assert created["available"] is True
    assert created["created_at"] >= book["created_at"]
    assert "shelf" not in created
    assert api.get(f"/api/books/{created['id']}").json() == created


def test_the_creation_of_a_book_is_told_in_utc(api: httpx.Client) -> None:
    before = datetime.now(UTC).replace(tzinfo=None)
    created_at = api.post("/api/books", json=new_book()).json()["created_at"]
    after = datetime.now(UTC).replace(tzinfo=None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}", created_at)
    assert before <= datetime.fromisoformat(created_at) <= after


def test_the_creation_of_a_book_is_told_in_utc_by_a_server_in_tokyo(tmp_path: Path) -> None:
    with serving(tmp_path, TZ="Asia/Tokyo", PGTZ="Asia/Tokyo") as service, service.client() as client:
        before = datetime.now(UTC).replace(tzinfo=None)
        created = client.post("/api/books", json=new_book()).json()
        after = datetime.now(UTC).replace(tzinfo=None)
        read = client.get(f"/api/books/{created['id']}").json()
    assert before <= datetime.fromisoformat(created["created_at"]) <= after
    assert read == created


def test_the_time_of_creation_is_the_same_in_every_answer(api: httpx.Client) -> None:
    created = api.post("/api/books", json=new_book()).json()
    address = f"/api/books/{created['id']}"
    told = [
        api.get(address).json(),
        api.put(address, json={"year": 2000}).json(),
        api.get(address).json(),
        api.get("/api/books").json()[-1],
    ]
    assert [book["created_at"] for book in told] == [created["created_at"]] * 4


def test_a_second_book_of_one_isbn_is_refused(api: httpx.Client, book: dict[str, Any]) -> None:
    answer = api.post("/api/books", json=new_book(title="Another", isbn=book["isbn"]))
    assert refusal(answer) == (409, ["detail"])
    assert api.get("/api/books").json() == [book]


@pytest.mark.parametrize(
    ("one", "other"),
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
def test_isbns_are_the_same_only_to_the_letter(api: httpx.Client, one: str, other: str) -> None:
    answers = [api.post("/api/books", json=new_book(isbn=isbn)) for isbn in (one, other, one, other)]
    assert [answer.status_code for answer in answers] == [201, 201, 409, 409]
    assert [book["isbn"] for book in api.get("/api/books").json()] == [one, other]


def test_an_isbn_may_be_used_again_after_its_book_is_gone(api: httpx.Client, book: dict[str, Any]) -> None:
    api.delete(f"/api/books/{book['id']}")
    assert api.post("/api/books", json=new_book(isbn=book["isbn"])).status_code == 201
