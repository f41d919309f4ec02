"""The document that many of these tests read."""

from typing import Any

import httpx
import pytest

from tests.support.openapi import V2_DOCUMENT_URL


@pytest.fixture
def document(api: httpx.Client) -> dict[str, Any]:
    """The document of version 2."""
    document: dict[str, Any] = api.get(V2_DOCUMENT_URL).json()
    return document
