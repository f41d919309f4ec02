"""Pages of other origins may not write, because a browser sends some bodies without asking (RFC 6454)."""

import json
from typing import Any

import httpx
from pytest_django import Settings

from tests.support.books import build_book

FOREIGN = [
    "https://evil.example",
    "null",
    "http://127.0.0.1:1",
    "https://127.0.0.1",
    "http://127.0.0.1.evil.example",
    "",
]
MESSAGE = "Pages of this origin may not write here"


def test_a_page_of_another_origin_changes_nothing(api: httpx.Client, book: dict[str, Any]) -> None:
    """The other methods are in test_order_of_checks.py."""
    deletion = {"operations": [{"op": "delete", "id": book["id"]}]}
    for address, body in (("/api/books", build_book()), ("/api/v2/books/bulk", deletion)):
        for origin in FOREIGN:
            # As `fetch` sends a Blob in the mode no-cors: without a Content-Type.
            response = api.post(address, content=json.dumps(body), headers={"Origin": origin})
            assert response.status_code == 403, (address, origin)
            assert MESSAGE in (response.json().get("detail"), response.json().get("error", {}).get("message"))
    assert api.get("/api/books").json() == [book]


def test_pages_of_our_own_and_of_allowed_origins_may_write(api: httpx.Client, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://library.example"
    settings.CORS_ALLOWED_ORIGINS = ["https://shop.example"]
    for origin in ("https://library.example", "http://127.0.0.1", "https://shop.example"):
        assert api.post("/api/books", json=build_book(), headers={"Origin": origin}).status_code == 201


def test_pages_of_other_origins_may_read(api: httpx.Client) -> None:
    for method, address in (("GET", "/api/books"), ("HEAD", "/api/v2/books"), ("OPTIONS", "/api/v2/books")):
        assert api.request(method, address, headers={"Origin": FOREIGN[0]}).is_success
