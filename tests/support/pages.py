"""Reads lists of version 2 and their errors, follows their pages, and forges cursors."""

import base64
import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import httpx

LIST_URL = "/api/v2/books"
SORT_NAMES = ["id", "title", "author", "year", "created_at"]
SORT_ORDERS = [prefix + name for name in SORT_NAMES for prefix in ("", "-")]


def list_ids(response: httpx.Response) -> list[int]:
    """Returns the ids of the books of a list, in its order."""
    return [book["id"] for book in response.json()["results"]]


def parse_error(response: httpx.Response) -> tuple[int, str, list[str]]:
    """Returns the status, the error code, and the fields that the details name."""
    error = response.json()["error"]
    return response.status_code, error["code"], [detail["field"] for detail in error.get("details", [])]


def build_validation_error(*fields: str) -> tuple[int, str, list[str]]:
    """Returns what `parse_error` returns for a query in which these fields are invalid."""
    return 422, "VALIDATION_ERROR", list(fields)


def walk_pages(api: httpx.Client, address: str, relation: str = "next") -> Iterator[dict[str, Any]]:
    """Yields the page at this address and the pages that its links of this relation lead to."""
    next_address: str | None = address
    while next_address:
        response = api.get(next_address)
        assert response.status_code == 200
        page: dict[str, Any] = response.json()
        yield page
        next_address = page[relation]


def forge_cursor(content: Any) -> str:
    """Returns a cursor with this content, as somebody who tampers with cursors writes it."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def fold_text(text: str) -> str:
    """Applies NFC and casefold, and NFC once more because casefold may decompose."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def sort_books(books: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Sorts as version 2 does: by the first 100 characters of the folded text in code-point order, then by id."""
    name = order.removeprefix("-")

    def make_key(book: dict[str, Any]) -> Any:
        value = book[name]
        return (fold_text(value)[:100] if name in ("title", "author") else value), book["id"]

    return sorted(books, key=make_key, reverse=order.startswith("-"))
