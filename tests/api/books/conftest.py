"""A stored book of version 2, its address and its ETag. The corpus has those of version 1."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book


@pytest.fixture
def creation(api: httpx.Client) -> httpx.Response:
    return api.post("/api/v2/books", json=build_book())


@pytest.fixture
def stored_book(creation: httpx.Response) -> dict[str, Any]:
    book: dict[str, Any] = creation.json()
    return book


@pytest.fixture
def address(creation: httpx.Response) -> str:
    return creation.headers["Location"]


@pytest.fixture
def etag(creation: httpx.Response) -> str:
    return creation.headers["ETag"]
