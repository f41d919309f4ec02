"""The OpenAPI documents of each version and of both together say what the library does."""

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
    list_contents,
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


@pytest.fixture
def v1_document(api: httpx.Client) -> dict[str, Any]:
    v1_document: dict[str, Any] = api.get(V1_DOCUMENT_URL).json()
    return v1_document


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


def list_query_schemas(document: dict[str, Any], path: str) -> dict[str, Any]:
    parameters = document["paths"][path]["get"]["parameters"]
    assert not any(parameter.get("required") for parameter in parameters if parameter["in"] == "query")
    return {parameter["name"]: parameter["schema"] for parameter in parameters if parameter["in"] == "query"}


def test_the_parameters_of_the_lists_have_their_bounds(document: dict[str, Any], v1_document: dict[str, Any]) -> None:
    first, second = list_query_schemas(v1_document, "/api/books"), list_query_schemas(document, BOOKS)
    assert first.keys() == {"author", "genre", "skip", "limit"}
    texts = {"title", "author", "genre", "isbn", "q"}
    others = {"available", "year_min", "year_max", "sort", "limit", "cursor", "count", "fields"}
    assert second.keys() == texts | others
    for schema in (first["author"], first["genre"], *(second[name] for name in texts)):
        assert [is_valid(document, schema, text) for text in ("", "%", "a" * 500)] == [True] * 3
        assert [is_valid(document, schema, text) for text in ("\0", "a" * 501)] == [False] * 2
    assert first["skip"] == {"type": "integer", "minimum": 0, "default": 0}
    assert first["limit"] == second["limit"] == {"type": "integer", "minimum": 1, "maximum": 500, "default": 100}
    sorts = {"id", "title", "author", "year", "created_at"}
    assert set(second["sort"]["enum"]) == sorts | {f"-{name}" for name in sorts}
    types = {"available": "boolean", "count": "boolean", "year_min": "integer", "year_max": "integer"}
    assert {name: second[name]["type"] for name in types} == types


def test_the_filters_of_changes_have_their_values(document: dict[str, Any]) -> None:
    parameters = list_query_schemas(document, CHANGES)
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


COMMON_STATUSES = {"401", "403", "503"}
STATUSES = {
    ("get", "/"): {"200"},
    ("get", "/api/books"): {"200", "422", *COMMON_STATUSES},
    ("post", "/api/books"): {"201", "409", "413", "415", "422", *COMMON_STATUSES},
    ("get", "/api/books/{book_id}"): {"200", "304", "404", "412", "422", *COMMON_STATUSES},
    ("put", "/api/books/{book_id}"): {"200", "404", "409", "412", "413", "415", "422", *COMMON_STATUSES},
    ("delete", "/api/books/{book_id}"): {"200", "404", "409", "412", "422", *COMMON_STATUSES},
}


def test_each_status_of_version_1_is_documented(v1_document: dict[str, Any]) -> None:
    for (method, address), statuses in STATUSES.items():
        assert v1_document["paths"][address][method]["responses"].keys() == statuses, (method, address)


def test_a_book_of_version_1_has_all_its_fields(v1_document: dict[str, Any]) -> None:
    """The time of its creation has a pattern and no format, because it has no zone."""
    schema = v1_document["paths"]["/api/books"]["post"]["responses"]["201"]["content"][JSON]["schema"]
    book_schema = v1_document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    fields = ["id", "title", "author", "year", "isbn", "genre", "available", "created_at"]
    assert (list(book_schema["properties"]), {*book_schema["required"]}) == (fields, {*fields})
    created_at = book_schema["properties"]["created_at"]
    assert (created_at["type"], "format" in created_at) == ("string", False)
    assert re.search(created_at["pattern"], "2026-01-31T09:30:00.000000")
    assert not re.search(created_at["pattern"], "2026-01-31T09:30:00.000000Z")


def test_every_body_has_an_example_that_is_valid(v1_document: dict[str, Any]) -> None:
    for name, content in list_contents(v1_document):
        examples = [example["value"] for example in content.get("examples", {}).values()]
        assert examples, name
        for example in examples:
            assert is_valid(v1_document, content["schema"], example), name


def test_the_examples_of_errors_of_version_1_are_real(
    api: httpx.Client, v1_document: dict[str, Any], book: dict[str, Any]
) -> None:
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
        documented = v1_document["paths"][path][method]["responses"][str(response.status_code)]["content"][JSON]
        assert [example["value"] for example in documented["examples"].values()] == [response.json()]
