"""Requests to a library that holds BOOKS."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

ADDED_AT = datetime(2026, 1, 31, 9, 30, 0, 250, UTC)
BOOKS: list[dict[str, Any]] = [
    {
        "title": "Pride and Prejudice",
        "author": "Jane Austen",
        "year": 1813,
        "isbn": "978-0-14-143951-8",
        "genre": "Novel",
        "created_at": ADDED_AT,
    },
    {
        "title": "Über 100% _\\ 📖",
        "author": "E\u0301mile ẞ",
        "year": -800,
        "isbn": "no isbn",
        "genre": "% ÉSS",
        "created_at": ADDED_AT.replace(microsecond=0),
    },
    {
        "title": "ﬁ",
        "author": "ausTEN",
        "year": 2**31 - 1,
        "isbn": "0306406152",
        "genre": "",
        "available": False,
        "created_at": ADDED_AT,
    },
]
STORED_ISBNS = [book["isbn"] for book in BOOKS]


class VersionSpelling(NamedTuple):
    """The ways in which a request names its version: in the path, the query, the Accept header."""

    prefix: str = "/api"
    query: str = ""
    accept: str | None = None


# A header without a value is absent.
Headers = Mapping[str, str | None]


class Request(NamedTuple):
    """One request. `path` is the part after the version, `credential` a name of `tests.support.credentials`.

    `query` is the raw query, with its bytes as Latin-1 characters, as WSGI passes it.
    """

    method: str
    path: str
    spelling: VersionSpelling = VersionSpelling()
    query: str = ""
    headers: Headers = {}
    credential: str = "none"
    body: bytes = b""
