"""What the corpus does not show of addresses, methods and media types of a response."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import parse_allow


@pytest.mark.parametrize("address", ["/", "/openapi.json", "/api/books", "/api/v2/books/1"])
def test_methods_are_case_sensitive(api: httpx.Client, address: str) -> None:
    """RFC 9110, 9.1."""
    for method in ("get", "Post", "pUT", "options"):
        request = api.build_request("GET", address)
        request.method = method
        response = api.send(request)
        assert (response.status_code, {"GET", "HEAD"} <= parse_allow(response)) == (405, True), method


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books"])
def test_a_refused_method_is_named_as_it_was_sent(api: httpx.Client, address: str) -> None:
    request = api.build_request("GET", address)
    request.method = "pUT"
    assert 'Method "pUT" not allowed.' in api.send(request).text.replace("\\", "")


def test_the_documentation_may_only_be_read(api: httpx.Client) -> None:
    for address in ("/docs", "/openapi.json"):
        response = api.post(address)
        assert (response.status_code, parse_allow(response)) == (405, {"GET", "HEAD", "OPTIONS"})


def test_an_unknown_address_is_not_found(api: httpx.Client) -> None:
    for address in ("/api/", "/api/books//", "/api/books/1/2", "/api/books/1%2F2", "/api/books%0A", "/API/BOOKS",
                    "/api/books.json", "//api/books"):  # fmt: skip
        for method in ("GET", "POST", "PROPFIND"):
            response = api.request(method, httpx.URL(f"http://127.0.0.1{address}"))
            assert (response.status_code, response.json()) == (404, {"detail": "Not Found"}), (method, address)
            assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(("accept", "query"), [("text/html", "?format=api"), ("application/json;q=0", "?format=")])
def test_responses_are_json_whatever_the_client_accepts(
    api: httpx.Client, book: dict[str, Any], accept: str, query: str
) -> None:
    headers, address = {"Accept": accept}, f"/api/books/{book['id']}{query}"
    responses = [
        api.get(f"/api/books{query}", headers=headers),
        api.post(f"/api/books{query}", json=build_book(), headers=headers),
        api.put(address, json={"year": 2000}, headers=headers),
        api.get(f"/api/books/abc{query}", headers=headers),
        api.patch(f"/api/books{query}", headers=headers),
        api.delete(address, headers=headers),
        api.get(address, headers=headers),
    ]
    assert [response.status_code for response in responses] == [200, 201, 200, 422, 405, 200, 404]
    assert {response.headers["Content-Type"] for response in responses} == {"application/json"}
