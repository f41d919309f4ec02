"""Of several things that are wrong with a request, the first is answered, in one order in both versions.

One is the origin: pages of others may not write, because a browser sends some bodies without asking (RFC 6454).
"""

import json
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from tests.support.books import build_book
from tests.support.oauth_flows import build_bearer_header, create_key_header, create_librarian
from tests.support.pages import parse_error

UNKNOWN = 987654321
# What is checked, in this order, and the statuses of the refusals in version 1 and 2. None where it is not refused.
CHECKS: dict[str, tuple[int | None, int]] = {
    "method": (405, 405),
    "version": (400, 400),
    "credential": (401, 401),
    "scope": (403, 403),
    "origin": (403, 403),
    "size": (413, 413),
    "media type": (415, 415),
    "existence": (404, 404),
    "query": (None, 400),
    "JSON": (422, 400),
    "values": (422, 422),
    "state": (412, 412),
    "isbn": (409, 409),
}
NOT_CHECKED = {
    "POST": {"existence", "state"},
    "DELETE": {"size", "media type", "JSON", "values", "isbn"},
    "GET": {"scope", "origin", "size", "media type", "JSON", "values", "isbn"},
    "PUT": set[str](),
    "PATCH": set[str](),
}


def build_request(home: str, method: str, wrong: set[str], own: Any, isbn: str, key: dict[str, str]) -> dict[str, Any]:
    """Builds a request of which all this is wrong."""
    pk = UNKNOWN if "existence" in wrong else own
    book = build_book(isbn=isbn, **({"year": "1984"} if "values" in wrong else {}))
    body = b" " * 2**21 if "size" in wrong else b"{" if "JSON" in wrong else json.dumps(book).encode()
    credential = build_bearer_header("no.token.ofours") if "credential" in wrong else key if "scope" in wrong else {}
    return {
        "method": "PROPFIND" if "method" in wrong else method,
        "url": f"{home}/books" if method == "POST" else f"{home}/books/{pk}",
        "params": {**({"version": 9} if "version" in wrong else {}), **({"shelf": 1} if "query" in wrong else {})},
        "content": body if method in ("POST", "PUT", "PATCH") else b"",
        "headers": {
            **credential,
            **({"Origin": "null"} if "origin" in wrong else {}),
            **({"Content-Type": "text/plain"} if "media type" in wrong else {}),
            **({"If-Match": '"of another time"'} if "state" in wrong else {}),
        },
    }


@pytest.mark.parametrize(
    ("home", "method"),
    [("/api", method) for method in ("GET", "POST", "PUT", "DELETE")] + [("/api/v2", method) for method in NOT_CHECKED],
)
def test_the_first_failing_check_is_answered(api: httpx.Client, book: dict[str, Any], home: str, method: str) -> None:
    other, key = api.post("/api/books", json=build_book()).json(), create_key_header(create_librarian(), "read")
    statuses = {name: both[home == "/api/v2"] for name, both in CHECKS.items() if name not in NOT_CHECKED[method]}
    wrong = [name for name, status in statuses.items() if status]
    for first, name in enumerate(wrong):
        request = build_request(home, method, {*wrong[first:]}, book["id"], other["isbn"], key)
        response = api.request(**request)
        has_scope_challenge = "insufficient_scope" in response.headers.get("WWW-Authenticate", "")
        assert (response.status_code, has_scope_challenge) == (statuses[name], name == "scope"), name
    assert api.get("/api/books").json() == [book, other]


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("query", "body", "field"), [("?shelf=1", b"{", "shelf"), ("", b"{", "body"), ("", b"[]", "body")]
)
def test_a_bad_id_is_listed_with_what_else_is_wrong(
    api: httpx.Client, method: str, query: str, body: bytes, field: str
) -> None:
    response = api.request(method, f"/api/v2/books/first{query}", content=body)
    assert parse_error(response) == (422, "VALIDATION_ERROR", ["book_id", field])


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
    """`test_the_first_failing_check_is_answered` has the other methods."""
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
