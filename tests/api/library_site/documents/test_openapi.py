"""The OpenAPI document says about version 1 what the library does."""

import re
from typing import Any

import httpx
import pytest

from tests.support.books import build_book
from tests.support.openapi import JSON, is_valid, list_contents

COMMON_STATUSES = {"401", "403", "503"}
STATUSES = {
    ("get", "/"): {"200"},
    ("get", "/api/books"): {"200", "422", *COMMON_STATUSES},
    ("post", "/api/books"): {"201", "409", "413", "415", "422", *COMMON_STATUSES},
    ("get", "/api/books/{book_id}"): {"200", "304", "404", "412", "422", *COMMON_STATUSES},
    ("put", "/api/books/{book_id}"): {"200", "404", "409", "412", "413", "415", "422", *COMMON_STATUSES},
    ("delete", "/api/books/{book_id}"): {"200", "404", "409", "412", "422", *COMMON_STATUSES},
}


@pytest.fixture
def document(api: httpx.Client) -> dict[str, Any]:
    document: dict[str, Any] = api.get("/openapi.json").json()
    return document


def test_each_status_that_occurs_is_documented(document: dict[str, Any]) -> None:
    for (method, address), statuses in STATUSES.items():
        assert document["paths"][address][method]["responses"].keys() == statuses, (method, address)


def test_the_parameters_of_the_list_have_their_bounds(document: dict[str, Any]) -> None:
    parameters = {parameter["name"]: parameter for parameter in document["paths"]["/api/books"]["get"]["parameters"]}
    assert {(item["in"], item.get("required", False)) for item in parameters.values()} == {("query", False)}
    assert parameters["skip"]["schema"] == {"type": "integer", "minimum": 0, "default": 0}
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
    for name in ("author", "genre"):
        schema = parameters[name]["schema"]
        assert [is_valid(document, schema, text) for text in ("", "%", "a" * 500)] == [True] * 3
        assert [is_valid(document, schema, text) for text in ("\0", "a" * 501)] == [False] * 2


def test_a_book_has_all_its_fields(document: dict[str, Any]) -> None:
    """The time of its creation has a pattern and no format, because it has no zone."""
    schema = document["paths"]["/api/books"]["post"]["responses"]["201"]["content"][JSON]["schema"]
    book_schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    fields = ["id", "title", "author", "year", "isbn", "genre", "available", "created_at"]
    assert (list(book_schema["properties"]), {*book_schema["required"]}) == (fields, {*fields})
    created_at = book_schema["properties"]["created_at"]
    assert (created_at["type"], "format" in created_at) == ("string", False)
    assert re.search(created_at["pattern"], "2026-01-31T09:30:00.000000")
    assert not re.search(created_at["pattern"], "2026-01-31T09:30:00.000000Z")


def test_every_body_has_an_example_that_is_valid(document: dict[str, Any]) -> None:
    for name, content in list_contents(document):
        examples = [example["value"] for example in content.get("examples", {}).values()]
        assert examples, name
        for example in examples:
            assert is_valid(document, content["schema"], example), name


def test_the_examples_of_errors_are_real(api: httpx.Client, document: dict[str, Any], book: dict[str, Any]) -> None:
    address, text = f"/api/books/{book['id']}", {"Content-Type": "text/plain"}
    responses = [
        ("get", "/api/books", api.get("/api/books?limit=501")),
        ("post", "/api/books", api.post("/api/books", json=book)),
        ("post", "/api/books", api.post("/api/books", content=b" " * (1024 * 1024 + 1))),
        ("post", "/api/books", api.post("/api/books", content=b"{}", headers=text)),
        ("post", "/api/books", api.post("/api/books", json=build_book(year="1984"))),
        ("get", "/api/books/{book_id}", api.get("/api/books/0")),
        ("get", "/api/books/{book_id}", api.get(address, headers={"If-Match": '"other"'})),
        ("put", "/api/books/{book_id}", api.put(address, headers={"Authorization": "Bearer no.token.ofours"})),
    ]
    for method, path, response in responses:
        documented = document["paths"][path][method]["responses"][str(response.status_code)]["content"][JSON]
        assert [example["value"] for example in documented["examples"].values()] == [response.json()]
