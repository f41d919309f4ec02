"""The OpenAPI documents of each version and of both together, and the contents of that of version 2."""

import json
import os
import re
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.support.books import build_book
from tests.support.history import CHANGES
from tests.support.oauth_flows import create_key_header, create_librarian
from tests.support.openapi import (
    DOCUMENT_URL,
    HOOK,
    JSON,
    V1_DOCUMENT_URL,
    V2_DOCUMENT_URL,
    check_responses,
    collect_operations,
    drop_request_id,
    get_body_schema,
    get_response,
    is_valid,
    list_undocumented_responses,
)
from tests.support.operations import run_operations

BOOKS, BOOK, BULK = "/api/v2/books", "/api/v2/books/{book_id}", "/api/v2/books/bulk"
HISTORY, REVERT, RESTORE = (f"{BOOK}/{action}" for action in ("history", "revert", "restore"))
OPERATIONS, OPERATION = "/api/v2/operations", "/api/v2/operations/{operation_id}"
CANCEL, UNDO = f"{OPERATION}/cancel", f"{OPERATION}/undo"
KEYS = "/api/v2/api-keys"
REFERENCE = re.compile('"\\$ref": "#/components/schemas/([^"]+)"')
FIELDS = "id title author year isbn isbn13 genre available created_at updated_at version".split()


@pytest.mark.parametrize("address", [DOCUMENT_URL, V1_DOCUMENT_URL, V2_DOCUMENT_URL])
def test_each_document_is_valid_openapi_3_1_and_the_same_for_every_client(api: httpx.Client, address: str) -> None:
    document = api.get(address).json()
    assert document["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(document).validate()
    assert {name: value for name, value in document["info"].items() if name != "license"} == {
        "title": "Library API",
        "description": "A RESTful API for managing books in a library",
        "version": "1.0.0",
    }
    names = [operation["operationId"] for operation in collect_operations(document).values()]
    assert len(names) == len(set(names))
    unusual = api.get(f"{address}/?version=9", headers={"Accept": "text/html"})
    assert (unusual.status_code, unusual.headers["Content-Type"], unusual.json()) == (200, JSON, document)


def test_each_version_is_documented_alone(api: httpx.Client) -> None:
    first, second = (api.get(address).json()["paths"].keys() for address in (V1_DOCUMENT_URL, V2_DOCUMENT_URL))
    assert first == {"/", "/api/books", "/api/books/{book_id}"}
    assert len(second) > 20
    assert {path for path in second if not path.startswith("/api/v2/")} == {"/"}


def test_the_command_refuses_a_version_that_is_not_served() -> None:
    for version in ("v9", None):
        with pytest.raises(CommandError, match=r"--api-version takes one of v1, v2\."):
            call_command("spectacular", api_version=version, skip_checks=True, file=os.devnull)


def test_both_versions_are_documented_together(api: httpx.Client) -> None:
    complete, first, second = (api.get(address).json() for address in (DOCUMENT_URL, V1_DOCUMENT_URL, V2_DOCUMENT_URL))
    assert complete["paths"].keys() == first["paths"].keys() | second["paths"].keys()
    for document in (first, second):
        for (method, path), operation in collect_operations(document).items():
            assert complete["paths"][path][method]["responses"].keys() == operation["responses"].keys()
    # Both keep their schemas.
    assert {*REFERENCE.findall(json.dumps(complete))} <= complete["components"]["schemas"].keys()
    for document, path in ((first, "/api/books"), (second, BOOKS)):
        for source in (document, complete):
            schema = get_response(source, "post", path, 201)["content"][JSON]["schema"]
            book_schema = source["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            assert ("isbn13" in book_schema["properties"]) == (document is second)


def test_the_parameters_of_the_list_have_their_bounds(document: dict[str, Any]) -> None:
    parameters = document["paths"][BOOKS]["get"]["parameters"]
    parameters = {parameter["name"]: parameter for parameter in parameters if parameter["in"] == "query"}
    texts = {"title", "author", "genre", "isbn", "q"}
    others = {"available", "year_min", "year_max", "sort", "limit", "cursor", "count", "fields"}
    assert parameters.keys() == texts | others
    for name in texts:
        schema = parameters[name]["schema"]
        assert [is_valid(document, schema, text) for text in ("", "%", "a" * 500)] == [True] * 3
        assert [is_valid(document, schema, text) for text in ("\0", "a" * 501)] == [False] * 2
    assert parameters["limit"]["schema"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
    sorts = {"id", "title", "author", "year", "created_at"}
    assert set(parameters["sort"]["schema"]["enum"]) == sorts | {f"-{name}" for name in sorts}
    for name in ("available", "count"):
        assert parameters[name]["schema"]["type"] == "boolean"
    for name in ("year_min", "year_max"):
        assert parameters[name]["schema"]["type"] == "integer"


def test_the_filters_of_changes_have_their_values(document: dict[str, Any]) -> None:
    parameters = {
        parameter["name"]: parameter["schema"]
        for parameter in document["paths"][CHANGES]["get"]["parameters"]
        if parameter["in"] == "query"
    }
    assert parameters.keys() == {"actor", "channel", "kind", "since", "until", "limit", "cursor"}
    assert parameters["channel"]["enum"] == ["v1", "v2", "bulk", "admin", "import", "command", "mirror", "operation"]
    assert parameters["kind"]["enum"] == ["created", "changed", "deleted", "restored", "merged"]
    assert [parameters[name]["format"] for name in ("since", "until")] == ["date-time"] * 2
    assert (parameters["limit"]["minimum"], parameters["limit"]["maximum"]) == (1, 500)


def test_a_book_has_all_its_fields_which_can_be_chosen(document: dict[str, Any]) -> None:
    schema = get_response(document, "post", BOOKS, 201)["content"][JSON]["schema"]
    book_schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    properties = book_schema["properties"]
    assert (list(properties), {*book_schema["required"]}) == (FIELDS, {*FIELDS})
    for name in ("created_at", "updated_at"):
        assert (properties[name]["type"], properties[name]["format"]) == ("string", "date-time")
    isbns = ("9780141439518", None, "0-14-143951-3")
    assert [is_valid(document, properties["isbn13"], isbn) for isbn in isbns] == [True, True, False]
    for address in (BOOKS, BOOK):
        parameters = {parameter["name"]: parameter for parameter in document["paths"][address]["get"]["parameters"]}
        assert parameters["fields"]["schema"]["items"]["enum"] == FIELDS
        # By default a query repeats the parameter (OpenAPI 3.1, 4.8.12.2).
        assert parameters["fields"].keys().isdisjoint(["style", "explode"])


def test_a_book_is_available_or_not(document: dict[str, Any]) -> None:
    for method in ("put", "patch"):
        bodies = [build_book(available=value) for value in (True, False, "no", 0, None)]
        schema = get_body_schema(document, method, BOOK)
        assert [is_valid(document, schema, body) for body in bodies] == [True, True, False, False, False]


def test_a_change_may_come_as_a_merge_patch(document: dict[str, Any]) -> None:
    for address in (BOOK, HOOK):
        content = document["paths"][address]["patch"]["requestBody"]["content"]
        assert content.keys() == {JSON, "application/merge-patch+json"}


def test_the_document_allows_valid_operations_alone(document: dict[str, Any]) -> None:
    schema = get_body_schema(document, "post", BULK)
    for operation in (
        {"op": "create", "book": build_book()},
        {"op": "update", "id": 1, "book": {"available": False}},
        {"op": "delete", "id": 1, "version": 3},
    ):
        assert is_valid(document, schema, {"operations": [operation]}), operation
    invalid: list[Any] = [
        3,
        {"op": "burn", "id": 1},
        {"op": "create", "book": {"title": "Emma"}},
        {"op": "update", "book": {}},
        {"op": "update", "id": 1},
        {"op": "delete", "id": "1"},
        {"op": "delete", "id": 1, "shelf": 3},
    ]
    for operations in ([], [{"op": "delete", "id": 1}] * 1001, *([operation] for operation in invalid)):
        assert not is_valid(document, schema, {"operations": operations}), operations[:1]


def test_the_history_of_a_book_is_as_documented(
    api: httpx.Client, document: dict[str, Any], book: dict[str, Any]
) -> None:
    """Schemathesis, which has no credential, sees what is open to everybody."""
    address, key = f"{BOOKS}/{book['id']}", create_key_header(create_librarian())
    api.patch(address, json={"year": 2000})
    api.delete(address)
    api.post(f"{address}/restore")
    check_responses(
        document,
        [
            ("get", BOOK, 200, api.get(f"{address}?fields={','.join(FIELDS)}")),
            ("get", BOOKS, 304, api.get(BOOKS, headers={"If-None-Match": "*"})),
            ("get", HISTORY, 200, api.get(f"{address}/history", headers=key)),
            ("get", CHANGES, 200, api.get(f"{CHANGES}?limit=1&since=2026-01-01T00:00:00Z", headers=key)),
        ],
    )


def test_responses_about_operations_are_as_documented(
    api: httpx.Client, document: dict[str, Any], book: dict[str, Any]
) -> None:
    key = create_key_header(create_librarian("ada", "Head librarians"))
    body = {"kind": "edit", "filter": {}, "set": {"year": 1}}
    begun = [api.post(OPERATIONS, json=body, headers=key) for _ in range(2)]
    [done, waiting] = [response.headers["Location"] for response in begun]
    cancelled = api.post(f"{waiting}/cancel", headers=key)
    run_operations()
    check_responses(
        document,
        [
            ("post", OPERATIONS, 202, begun[0]),
            ("post", OPERATIONS, 200, api.post(f"{OPERATIONS}?dry_run=true", json=body, headers=key)),
            ("post", CANCEL, 202, cancelled),
            ("get", OPERATION, 200, api.get(done, headers=key)),
            ("post", UNDO, 202, api.post(f"{done}/undo", headers=key)),
        ],
    )
    errors = [
        ("post", OPERATIONS, api.post(OPERATIONS, json={**body, "filter": {"year_min": "1"}}, headers=key)),
        ("get", OPERATION, api.get(f"{OPERATIONS}/0", headers=key)),
        ("post", CANCEL, api.post(f"{done}/cancel", headers=key)),
        ("post", UNDO, api.post(f"{done}/undo", headers=key)),
    ]
    assert [response.status_code for *_, response in errors] == [422, 404, 409, 409]
    assert list_undocumented_responses(document, errors) == []


def test_the_examples_of_these_errors_are_real(api: httpx.Client, document: dict[str, Any]) -> None:
    book = api.post(BOOKS, json=build_book()).json()
    key, reading_key = (create_key_header(create_librarian(scope, "Developers"), scope) for scope in ("write", "read"))
    book_address, other = f"{BOOKS}/{book['id']}", {"If-Match": '"other"'}
    operations = {"operations": [{"op": "delete", "id": book["id"]}, {"op": "delete", "id": 0}]}
    responses = [
        ("get", BOOKS, api.get(BOOKS, headers=other)),
        ("get", BOOKS, api.get(f"{BOOKS}?limit=501")),
        ("post", BOOKS, api.post(BOOKS, json=build_book(year="1984"))),
        ("patch", BOOK, api.patch(book_address, json={"year": "1984"})),
        ("delete", BOOK, api.delete(book_address, headers=other)),
        ("post", BULK, api.post(BULK, json=operations)),
        ("get", HISTORY, api.get(f"{book_address}/history?limit=501", headers=key)),
        ("post", REVERT, api.post(f"{book_address}/revert", json={"version": 1}, headers=other)),
        ("post", REVERT, api.post(f"{book_address}/revert", json={"version": 2})),
        ("post", RESTORE, api.post(f"{book_address}/restore")),
        ("post", RESTORE, api.post(f"{book_address}/restore", headers=other)),
        ("post", KEYS, api.post(KEYS, json={"name": "More", "scopes": "write"}, headers=reading_key)),
        ("post", KEYS, api.post(KEYS, json={"name": "More", "scopes": "all"}, headers=reading_key)),
    ]
    assert {response.status_code for *_, response in responses} == {403, 409, 412, 422}
    assert list_undocumented_responses(document, responses) == []


def test_the_example_of_a_conflict_is_real(api: httpx.Client, document: dict[str, Any], book: dict[str, Any]) -> None:
    duplicate = build_book(isbn=book["isbn"])
    for address, body in ((BOOKS, duplicate), (BULK, {"operations": [{"op": "create", "book": duplicate}]})):
        response = api.post(address, json=body).json()
        (example,) = get_response(document, "post", address, 409)["content"][JSON]["examples"].values()
        text = json.dumps(drop_request_id(response)).replace(f"/books/{book['id']} ", "/books/1 ")
        assert drop_request_id(example["value"]) == json.loads(text)


DOCS_PAGES = {
    "/docs": ("Library API", "All versions", DOCUMENT_URL),
    "/docs/v1": ("Library API, version 1", "Version 1", V1_DOCUMENT_URL),
    "/docs/v2": ("Library API, version 2", "Version 2", V2_DOCUMENT_URL),
}


def test_every_page_of_the_docs_shows_its_document_and_leads_to_the_others(api: httpx.Client) -> None:
    for address, (title, current, document) in DOCS_PAGES.items():
        page = api.get(f"{settings.PUBLIC_URL}{address}/")
        assert page.status_code == 200
        assert re.findall("<title>(.*)</title>", page.text) == [title]
        assert re.findall('aria-current="page">([^<]*)<', page.text) == [current]
        links = re.findall('<a [^>]*href="([^"]*)"[^>]*>([^<]*)</a>', page.text)
        assert links[:3] == [("/docs", "All versions"), ("/docs/v1", "Version 1"), ("/docs/v2", "Version 2")]
        assert [name for _, name in links[3:]] == ["OpenAPI document"]
        assert page.headers["Content-Security-Policy"] == api.get("/docs").headers["Content-Security-Policy"]
        (script,) = re.findall(f'src="({address}[^"]*)"', page.text)
        assert f'"{document}"' in api.get(script).text
