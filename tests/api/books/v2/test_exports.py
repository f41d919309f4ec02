"""The list of version 2 as a file, in a format that Accept names."""

from itertools import chain
from typing import Any
from unittest.mock import ANY

import httpx
import pytest
from django.db import OperationalError

from books.api.exports import choose_format
from books.files import exports
from books.files.formats.registry import STREAMED_FORMATS
from books.models import Book
from tests.support.book_files import get_fields, read_records
from tests.support.books import build_book
from tests.support.pages import LIST_URL, parse_error


@pytest.fixture
def books(api: httpx.Client) -> list[dict[str, Any]]:
    return [
        api.post(LIST_URL, json=build_book(title=f"=Title {n}", author="Zoë", year=1900 + n)).json() for n in range(5)
    ]


@pytest.mark.parametrize("media_type", STREAMED_FORMATS)
def test_all_books_that_match_are_in_the_file(
    api: httpx.Client, books: list[dict[str, Any]], media_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "FIRST_PAGE_BOOKS", 1)
    monkeypatch.setattr(exports, "PAGE_BOOKS", 2)
    format = STREAMED_FORMATS[media_type]
    response = api.get(LIST_URL, params={"author": "ZOË", "year_min": "1901"}, headers={"Accept": media_type})
    fields = [get_fields(record) for record in read_records(format.name, response.content)]
    assert fields == [{name: book[name] for name in fields[0]} for book in books[1:]]
    assert dict(response.headers) == {
        "content-type": format.content_type,
        "content-disposition": f'attachment; filename="books{format.extension}"',
        "cache-control": "no-cache",
        "vary": "Accept, Authorization, X-API-Key",
        **dict.fromkeys(["allow", "cross-origin-opener-policy", "referrer-policy", "x-content-type-options"], ANY),
        "x-request-id": ANY,
    }
    empty_response = api.get(LIST_URL, params={"author": "nobody"}, headers={"Accept": media_type})
    assert (
        read_records(format.name, empty_response.content) == [] if media_type != "text/csv" else empty_response.content
    )


def test_json_lines_have_the_fields_of_version_2(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    response = api.get("/api/books?version=2", headers={"Accept": "application/x-ndjson"})
    assert [dict(record.values) for record in read_records("jsonl", response.content)] == books


def test_a_file_is_of_a_list_of_version_2_alone(api: httpx.Client, books: list[dict[str, Any]]) -> None:
    response = api.head(LIST_URL, headers={"Accept": "text/csv"})
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    for address in ("/api/books", f"{LIST_URL}/{books[0]['id']}"):
        assert api.get(address, headers={"Accept": "text/csv"}).headers["Content-Type"] == "application/json"


def test_a_format_must_be_preferred_to_json() -> None:
    names = {
        "TEXT/CSV;header=present": "csv",
        "text/csv, */*": "csv",
        "text/csv;q=0.5, application/marc": "marc",
        "text/csv;q=0.9, application/json;q=0.8": "csv",
        "text/csv, application/json": "",
        "text/csv, application/vnd.library.v2+json": "",
        "text/csv;q=0.5, */*": "",
        "text/csv;q=0": "",
        "text/csv;q=x": "",
        "text/csv;q=5, application/json;q=0.9": "",
        "text/csv; q*=x'en'1; v*=x'y'z": "csv",
        "text/*": "",
        "": "",
    }
    formats = {accept: choose_format(accept) for accept in names}
    assert {accept: format.name if format else "" for accept, format in formats.items()} == names


def test_a_file_knows_no_parameters_but_filters(api: httpx.Client) -> None:
    for name in ("sort", "limit", "cursor", "count", "fields", "autor"):
        response = api.get(LIST_URL, params={name: "1"}, headers={"Accept": "text/csv"})
        assert parse_error(response) == (400, "UNKNOWN_PARAMETER", [name])


def test_errors_are_in_the_shape_of_version_2(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Accept": "text/csv"}
    response = api.get(f"{LIST_URL}?year_min=x&available=x", headers=headers)
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["available", "year_min"])
    assert api.get(LIST_URL, headers={**headers, "If-None-Match": "*"}).status_code == 304

    def fail(*_: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(exports, "starmap", fail)
    response = api.get(LIST_URL, headers=headers)
    assert (parse_error(response)[:2], "Retry-After" in response.headers) == ((503, "UNAVAILABLE"), True)


def test_a_book_that_is_added_meanwhile_is_in_the_file_once(monkeypatch: pytest.MonkeyPatch, api: httpx.Client) -> None:
    monkeypatch.setattr(exports, "FIRST_PAGE_BOOKS", 1)
    monkeypatch.setattr(exports, "PAGE_BOOKS", 1)
    first = api.post(LIST_URL, json=build_book()).json()["id"]
    pages = exports.iter_pages(Book.objects.all())
    books = next(pages)
    second = api.post(LIST_URL, json=build_book()).json()["id"]
    assert [book.id for book in chain(books, *pages)] == [first, second]
