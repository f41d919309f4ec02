"""A stored book of version 2, its address and its ETag, and a librarian with her API key."""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from tests.support.books import build_book
from tests.support.oauth_flows import create_key_header, create_librarian


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


@pytest.fixture
def librarian(db: None) -> User:
    return create_librarian("ada")


@pytest.fixture
def key(librarian: User) -> dict[str, str]:
    """The header of an API key that may change books."""
    return create_key_header(librarian)
