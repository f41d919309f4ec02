"""Fixtures of tests of both versions: a book of the version, its address, and its ETag."""

from typing import Any

import httpx
import pytest

from tests.support.api_versions import APIVersion


@pytest.fixture
def creation(api: httpx.Client, version: APIVersion) -> httpx.Response:
    return version.create(api)


@pytest.fixture
def stored_book(creation: httpx.Response) -> dict[str, Any]:
    """A book as its version shows it."""
    book: dict[str, Any] = creation.json()
    return book


@pytest.fixture
def address(creation: httpx.Response) -> str:
    return creation.headers["Location"]


@pytest.fixture
def etag(creation: httpx.Response) -> str:
    return creation.headers["ETag"]
