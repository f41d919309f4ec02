"""The documents allow just the bodies that the library accepts."""

from typing import Any

import httpx
import pytest

from tests.support.books import MAX_LENGTHS, build_book
from tests.support.openapi import V1_DOCUMENT_URL, V2_DOCUMENT_URL, get_body_schema, is_valid

pytestmark = pytest.mark.database_independent

Member = tuple[str, Any]

V1_BODIES = [("post", "/api/books"), ("put", "/api/books/{book_id}")]
V2_BODIES = [("post", "/api/v2/books"), ("put", "/api/v2/books/{book_id}"), ("patch", "/api/v2/books/{book_id}")]
READ_ONLY = ["id", "isbn13", "created_at", "updated_at", "version"]
V1_VALID_MEMBERS = [
    *[(name, text) for name, length in MAX_LENGTHS.items() for text in ("", " ", "𐐨" * length, "a\nb")],
    *[("year", year) for year in (0, 1984.0, -(2**31), 2**31 - 1)],
    *[(name, None) for name in ("id", "available", "created_at", "shelf")],
]
V1_INVALID_MEMBERS = [
    *[
        (name, text)
        for name, length in MAX_LENGTHS.items()
        for text in ("a" * (length + 1), "\0", "a\n\0", 123, True, None)
    ],
    *[("year", year) for year in (-(2**31) - 1, 2**31, 19.5, "1984", True, None)],
]
V2_VALID_MEMBERS = [
    *[(name, text) for name, length in MAX_LENGTHS.items() for text in ("𐐨" * length, " a\nb ")],
    *[("year", year) for year in (0, 1984.0, -(2**31), 2**31 - 1)],
    *[(name, None) for name in READ_ONLY],
]
V2_INVALID_MEMBERS = [
    *[
        (name, text)
        for name, length in MAX_LENGTHS.items()
        for text in ("a" * (length + 1), "", " \n", "a\0", 123, True, None)
    ],
    *[("year", year) for year in (-(2**31) - 1, 2**31, 19.5, "1984", True, None)],
    ("shelf", 3),
    ("Title", "Emma"),
]


def build_cases(v1_members: list[Member], v2_members: list[Member]) -> list[tuple[str, str, str, str, Any]]:
    """The address of a document, then method and address of a body, then name and value of a member."""
    versions = ((V1_DOCUMENT_URL, V1_BODIES, v1_members), (V2_DOCUMENT_URL, V2_BODIES, v2_members))
    return [(url, *body, *member) for url, bodies, members in versions for body in bodies for member in members]


def allows(api: httpx.Client, url: str, method: str, address: str, name: str, value: object) -> bool:
    document: dict[str, Any] = api.get(url).json()
    return is_valid(document, get_body_schema(document, method, address), build_book(**{name: value}))


@pytest.mark.parametrize(("url", "method", "address", "name", "value"), build_cases(V1_VALID_MEMBERS, V2_VALID_MEMBERS))
def test_the_document_allows_a_valid_body(
    api: httpx.Client, url: str, method: str, address: str, name: str, value: object
) -> None:
    assert allows(api, url, method, address, name, value)


@pytest.mark.parametrize(
    ("url", "method", "address", "name", "value"), build_cases(V1_INVALID_MEMBERS, V2_INVALID_MEMBERS)
)
def test_the_document_forbids_an_invalid_body(
    api: httpx.Client, url: str, method: str, address: str, name: str, value: object
) -> None:
    assert not allows(api, url, method, address, name, value)
