"""Addresses, methods and media types of a response."""

from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.responses import parse_allow, parse_refusal

ALLOWED = {
    "/": {"GET", "HEAD", "OPTIONS"},
    "/api/books": {"GET", "POST", "HEAD", "OPTIONS"},
    "/api/books/": {"GET", "POST", "HEAD", "OPTIONS"},
    "/api/books/1": {"GET", "PUT", "DELETE", "HEAD", "OPTIONS"},
    "/api/books/1/": {"GET", "PUT", "DELETE", "HEAD", "OPTIONS"},
    "/api/books/987654321": {"GET", "PUT", "DELETE", "HEAD", "OPTIONS"},
    "/api/books/abc": {"GET", "PUT", "DELETE", "HEAD", "OPTIONS"},
    "/openapi.json": {"GET", "HEAD", "OPTIONS"},
}
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"]
WRONG = [(method, address) for address in ALLOWED for method in METHODS if method not in ALLOWED[address]]


def test_the_root_points_to_the_documentation(api: httpx.Client) -> None:
    response = api.get("/")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json() == {"message": "Welcome to the Library API. See /docs for its documentation."}


@pytest.mark.parametrize(("method", "address"), WRONG)
def test_a_wrong_method_is_answered_with_the_allowed_ones(api: httpx.Client, method: str, address: str) -> None:
    response = api.request(method, address, content=b"{")
    assert parse_refusal(response) == (405, ["detail"])
    assert parse_allow(response) == ALLOWED[address]


@pytest.mark.parametrize("address", [*ALLOWED, "/api/v2/books"])
@pytest.mark.parametrize("method", ["get", "Post", "pUT", "delete", "options"])
def test_methods_are_case_sensitive(api: httpx.Client, method: str, address: str) -> None:
    """RFC 9110, 9.1."""
    request = api.build_request("GET", address)
    request.method = method
    response = api.send(request)
    assert response.status_code == 405
    assert {"GET", "HEAD"} <= parse_allow(response)


@pytest.mark.parametrize("address", ["/api/books", "/api/v2/books"])
def test_a_refused_method_is_named_as_it_was_sent(api: httpx.Client, address: str) -> None:
    request = api.build_request("GET", address)
    request.method = "pUT"
    assert 'Method "pUT" not allowed.' in api.send(request).text.replace("\\", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_documentation_may_only_be_read(api: httpx.Client, method: str) -> None:
    response = api.request(method, "/docs")
    assert (response.status_code, parse_allow(response)) == (405, {"GET", "HEAD", "OPTIONS"})


@pytest.mark.parametrize("address", ALLOWED)
def test_options_lists_the_methods(api: httpx.Client, address: str) -> None:
    response = api.options(address)
    assert response.is_success
    assert parse_allow(response) == ALLOWED[address]


@pytest.mark.parametrize(
    "address",
    [
        "/nothing",
        "/api",
        "/api/",
        "/api/nothing",
        "/api/book",
        "/api/books//",
        "/api/books/1//",
        "/api/books/1/2",
        "/api/books/1%2F2",
        "/api/books%0A",
        "/API/BOOKS",
        "/api/books.json",
        "//api/books",
    ],
)
def test_an_unknown_address_is_not_found(api: httpx.Client, address: str) -> None:
    for method in METHODS:
        response = api.request(method, httpx.URL(f"http://127.0.0.1{address}"))
        assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})
        assert response.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*", "application/json;q=0", "", "nonsense"])
@pytest.mark.parametrize("query", ["", "?format=xml", "?format=api", "?format="])
def test_responses_are_json_whatever_the_client_accepts(
    api: httpx.Client, book: dict[str, Any], accept: str, query: str
) -> None:
    headers = {"Accept": accept}
    responses = [
        api.get(f"/api/books{query}", headers=headers),
        api.get(f"/api/books/{book['id']}{query}", headers=headers),
        api.post(f"/api/books{query}", json=build_book(), headers=headers),
        api.put(f"/api/books/{book['id']}{query}", json={"year": 2000}, headers=headers),
        api.get(f"/api/books/abc{query}", headers=headers),
        api.patch(f"/api/books{query}", headers=headers),
        api.delete(f"/api/books/{book['id']}{query}", headers=headers),
        api.get(f"/api/books/{book['id']}{query}", headers=headers),
    ]
    assert [response.status_code for response in responses] == [200, 200, 201, 200, 422, 405, 200, 404]
    assert {response.headers["Content-Type"] for response in responses} == {"application/json"}
