"""What holds for each operation of version 2, as the document lists them: how it refuses what it does not take."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from pytest_django import Settings

from oauth.models import APIKey
from tests.support.books import build_book
from tests.support.endpoints import create_endpoint
from tests.support.failures import break_database
from tests.support.oauth_flows import build_bearer_header, create_key_header
from tests.support.openapi import list_undocumented_responses
from tests.support.pages import build_validation_error, parse_error
from tests.support.responses import parse_allow
from webhooks.models import Delivery

BOOKS, BULK, EVENTS, OPERATIONS = (f"/api/v2/{end}" for end in ("books", "books/bulk", "events", "operations"))
METHODS = ("get", "post", "put", "patch", "delete")
MIB = 2**20


class Operation(NamedTuple):
    """An operation of the document, and the address at which it finds what it is about."""

    method: str
    path: str
    address: str
    # The parameters of the query by name, and whether each takes several values.
    parameters: dict[str, bool]
    has_body: bool
    security: list[dict[str, list[str]]]


@pytest.fixture
def root(db: None) -> User:
    return User.objects.create_superuser("root")


@pytest.fixture
def key(root: User) -> dict[str, str]:
    return create_key_header(root, "read write webhooks")


@pytest.fixture
def ids(api: httpx.Client, root: User, key: dict[str, str]) -> dict[str, Any]:
    """The ids of rows that exist, by the names of the document."""
    endpoint = create_endpoint(root)
    book = api.post(BOOKS, json=build_book(), headers=key).json()
    api.patch(f"{BOOKS}/{book['id']}", json={"year": 1}, headers=key)
    edit = {"kind": "edit", "filter": {}, "set": {"year": 2}}
    operation = api.post(OPERATIONS, json=edit, headers=key).json()
    pks = {"book_id": book["id"], "operation_id": operation["id"], "webhook_id": endpoint.pk}
    return {**pks, "key_id": APIKey.objects.get().prefix, "delivery_id": Delivery.objects.earliest("pk").pk}


@pytest.fixture
def operations(document: dict[str, Any], ids: dict[str, Any]) -> list[Operation]:
    return list(iter_operations(document, ids))


def iter_operations(document: dict[str, Any], ids: dict[str, Any]) -> Iterator[Operation]:
    for path, details in document["paths"].items():
        for method in METHODS:
            if path.startswith("/api/") and (operation := details.get(method)):
                queries = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
                parameters = {query["name"]: query["schema"].get("type") == "array" for query in queries}
                has_body = "requestBody" in operation
                yield Operation(method, path, path.format(**ids), parameters, has_body, operation["security"])


def test_a_method_that_an_address_does_not_have_is_refused_with_those_it_has(
    api: httpx.Client, document: dict[str, Any], ids: dict[str, Any]
) -> None:
    for path, details in document["paths"].items():
        known = {method.upper() for method in details} | {"OPTIONS"} | ({"HEAD"} if "get" in details else set())
        for method in METHODS if path.startswith("/api/") else ():
            if method not in details:
                response = api.request(method, path.format(**ids))
                assert parse_error(response) == (405, "METHOD_NOT_ALLOWED", []), (method, path)
                assert parse_allow(response) == known, path


def test_an_unknown_parameter_is_named_with_the_nearest(
    api: httpx.Client, key: dict[str, str], operations: list[Operation], document: dict[str, Any]
) -> None:
    names = {name for operation in operations for name in operation.parameters}
    for method, path, address, parameters, *_ in operations:
        # `fields`, and a few others that other operations have: all would be a thousand requests.
        for name in [*({"fields"} - parameters.keys()), *sorted(names - parameters.keys())[::7]]:
            response = api.request(method, f"{address}?{name}=1", headers=key)
            assert parse_error(response) == (400, "UNKNOWN_PARAMETER", [name]), (method, path)
        for name in parameters or ("version",):
            response = api.request(method, f"{address}?{name}s=1", headers=key)
            assert parse_error(response) == (400, "UNKNOWN_PARAMETER", [f"{name}s"]), (method, path)
            assert f"the nearest name is {name}." in response.text
        if method in ("get", "delete"):
            example = api.request(method, f"{address}?autor={'austen' if path.startswith(BOOKS) else 5}", headers=key)
            assert list_undocumented_responses(document, [(method, path, example)]) == []


def test_a_parameter_of_one_value_is_not_repeated(
    api: httpx.Client, key: dict[str, str], operations: list[Operation]
) -> None:
    singles = [
        (*operation, name) for operation in operations for name, is_list in operation.parameters.items() if not is_list
    ]
    assert len(singles) > 20
    for method, path, address, *_, name in singles:
        response = api.request(method, f"{address}?{name}=1&{name}=1", headers=key)
        assert parse_error(response) == build_validation_error(name), (method, path)
        assert "more than once" in response.text


def test_what_is_not_there_is_not_found_whatever_the_body(
    api: httpx.Client, key: dict[str, str], ids: dict[str, Any], operations: list[Operation], document: dict[str, Any]
) -> None:
    for method, path, _, _, has_body, _ in operations:
        # The last id of the address: the first is there.
        name = path.rpartition("{")[2].partition("}")[0]
        for pk in ("0" * 12, "9" * 40, "first") if "{" in path else ():
            # That there is no such book is said before anything about the query and the state.
            query = "?shelf=1&limit=0" if path.startswith(BOOKS) and pk == "9" * 40 else ""
            address = path.format(**{**ids, name: pk}) + query
            headers = {**key, "If-Match": "*"} if query else key
            response = api.request(method, address, content=b"{" if has_body else b"", headers=headers)
            if (name, pk) == ("book_id", "first"):
                assert (response.status_code, parse_error(response)[2][0]) == (422, "book_id"), (method, path)
            else:
                assert parse_error(response) == (404, "NOT_FOUND", []), (method, path, pk)
                is_example = pk == "0" * 12
                assert not is_example or list_undocumented_responses(document, [(method, path, response)]) == []


def test_a_body_that_cannot_be_read_is_refused(
    api: httpx.Client, key: dict[str, str], operations: list[Operation], document: dict[str, Any]
) -> None:
    text = {**key, "Content-Type": "text/plain"}
    for method, path, address, *_ in [operation for operation in operations if operation.has_body]:
        largest = 16 * MIB if path == BULK else MIB
        cut_off = api.request(method, address, content=b"{".ljust(largest), headers=key)
        array = api.request(method, address, content=b"[]", headers=key)
        other = api.request(method, address, content=b"{}", headers=text)
        large = api.request(method, address, content=b" " * (largest + 1), headers=key)
        errors = [parse_error(response) for response in (cut_off, array, other, large)]
        assert errors == [
            (400, "MALFORMED_REQUEST", ["body"]),
            (422, "VALIDATION_ERROR", ["body"]),
            (415, "UNSUPPORTED_MEDIA_TYPE", []),
            (413, "PAYLOAD_TOO_LARGE", []),
        ], (method, path)
        examples = [(method, path, response) for response in (cut_off, other, large)]
        assert list_undocumented_responses(document, examples) == []


def test_a_credential_is_needed_where_the_document_says_so(
    api: httpx.Client, operations: list[Operation], document: dict[str, Any], settings: Settings
) -> None:
    """Which permissions an operation needs is in tests/api/library_site/test_rights.py."""
    for method, path, address, _, _, security in operations:
        settings.LIBRARY_ACCESS = "protected" if {} in security else "open"
        response = api.request(method, address)
        assert parse_error(response) == (401, "UNAUTHENTICATED", []), (method, path)
        assert response.headers["WWW-Authenticate"].startswith("Bearer realm=")
        settings.LIBRARY_ACCESS = "open"
        example = api.request(method, address, headers=build_bearer_header("no.token.ofours"))
        assert list_undocumented_responses(document, [(method, path, example)]) == []


def test_a_key_without_the_scope_is_refused(
    api: httpx.Client, root: User, operations: list[Operation], document: dict[str, Any]
) -> None:
    keys = {scope: create_key_header(root, scope) for scope in ("read", "webhooks")}
    for method, path, address, _, _, security in operations:
        [[*scopes]] = [scheme["OAuth2"] for scheme in security if "OAuth2" in scheme]
        response = api.request(method, address, headers=keys["read" if scopes != ["read"] else "webhooks"])
        if scopes:
            assert parse_error(response) == (403, "FORBIDDEN", []), (method, path)
            assert f'scope="{scopes[0]}"' in response.headers["WWW-Authenticate"]
            assert list_undocumented_responses(document, [(method, path, response)]) == []


def test_while_the_database_is_away_each_asks_to_try_again(
    api: httpx.Client, key: dict[str, str], operations: list[Operation]
) -> None:
    with break_database(OperationalError("away")):
        for method, path, address, *_ in operations:
            response = api.request(method, address, headers=key)
            assert parse_error(response) == (503, "UNAVAILABLE", []), (method, path)
            assert response.headers["Retry-After"] == "1"


def test_these_parameters_take_several_values(operations: list[Operation]) -> None:
    lists = [(method, path, name) for method, path, _, names, *_ in operations for name in names if names[name]]
    assert lists == [("get", BOOKS, "fields"), ("get", f"{BOOKS}/{{book_id}}", "fields"), ("get", EVENTS, "kinds")]


def test_the_union_of_fields_counts(api: httpx.Client, ids: dict[str, Any]) -> None:
    pk = ids["book_id"]
    shown = {"id": pk, "title": build_book()["title"]}
    for query in ("fields=id,title", "fields=id&fields=title,id"):
        assert api.get(f"{BOOKS}/{pk}?{query}").json() == shown
        assert api.get(f"{BOOKS}?{query}").json()["results"] == [shown]
    api.post(BOOKS, json=build_book(isbn="another"))
    link = api.get(f"{BOOKS}?fields=id&limit=1&fields=year").json()["next"]
    assert api.get(link).json()["results"][0].keys() == {"id", "year"}


def test_what_is_repeated_comes_after_what_is_unknown(api: httpx.Client) -> None:
    assert api.get(f"{BOOKS}?limit=1&limit=1&limits=1").status_code == 400
    assert parse_error(api.get(f"{BOOKS}?limit=1&limit=1&sort=id&sort=id"))[2] == ["limit", "sort"]
    assert api.get(f"{BOOKS}/77?sort=id&sort=id").status_code == 404
