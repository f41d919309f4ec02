"""Lists of version 2, and what is refused of them, in few words."""

import base64
import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import httpx

LIST = "/api/v2/books"
SORTS = ["id", "title", "author", "year", "created_at"]
ORDERS = [prefix + name for name in SORTS for prefix in ("", "-")]


def ids(answer: httpx.Response) -> list[int]:
    """Of the books of a list, in its order."""
    return [book["id"] for book in answer.json()["results"]]


def refused(answer: httpx.Response) -> tuple[int, str, list[str]]:
    """The status, the code, and the fields that are named."""
    error = answer.json()["error"]
    return answer.status_code, error["code"], [detail["field"] for detail in error.get("details", [])]


def invalid(*fields: str) -> tuple[int, str, list[str]]:
    """What `refused` tells of a query in which these fields are wrong."""
    return 422, "VALIDATION_ERROR", list(fields)


def walk(api: httpx.Client, address: str, relation: str = "next") -> Iterator[dict[str, Any]]:
    """The page at this address, and those after it as its links lead."""
    following: str | None = address
    while following:
        answer = api.get(following)
        assert answer.status_code == 200
        page: dict[str, Any] = answer.json()
        yield page
        following = page[relation]


def cursor(content: Any) -> str:
    """A cursor that says this, as one that tampers with them would write it."""
    written = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(written).decode().rstrip("=")


def folded(text: str) -> str:
    """NFC and casefold; composed again, since casefold may decompose."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def in_order(books: list[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """As version 2 sorts: by the first 100 characters of the folded text in code-point order, ties by id."""
    name = order.removeprefix("-")

    def key(book: dict[str, Any]) -> Any:
        value = book[name]
        return (folded(value)[:100] if name in ("title", "author") else value), book["id"]

    return sorted(books, key=key, reverse=order.startswith("-"))
