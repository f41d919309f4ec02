"""The documents name what generators of clients need."""

from typing import Any

import httpx
import pytest

from library_site.api.documents.clients import iter_nodes

METHODS = {"get", "post", "put", "patch", "delete"}
# Global class names that say nothing in a client.
VAGUE_NAMES = {"Entry", "Result", "Results", "Count", "Detail", "Secret", "Sample", "Create", "Update", "Delete"}


@pytest.fixture
def schemas(document: dict[str, Any]) -> dict[str, Any]:
    components: dict[str, Any] = document["components"]["schemas"]
    return components


def list_operations(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in document["paths"].values() for method, operation in path.items() if method in METHODS]


def get_json_schema(document: dict[str, Any], path: str) -> dict[str, Any]:
    schema: dict[str, Any] = document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    return schema


def test_books_and_pages_have_names(document: dict[str, Any], schemas: dict[str, Any]) -> None:
    pages = {
        "/api/v2/books": "BookPage",
        "/api/v2/books/{book_id}": "Book",
        "/api/v2/books/{book_id}/history": "ChangePage",
        "/api/v2/operations": "OperationPage",
        "/api/v2/events": "EventPage",
        "/api/v2/webhooks": "WebhookPage",
    }
    for path, name in pages.items():
        assert get_json_schema(document, path) == {"$ref": f"#/components/schemas/{name}"}
    assert schemas["BookPage"]["properties"]["results"]["items"] == {"$ref": "#/components/schemas/Book"}
    assert schemas["EventPage"]["properties"]["results"]["items"] == {"$ref": "#/components/schemas/Event"}
    assert not VAGUE_NAMES & schemas.keys()


def test_each_schema_has_one_type_and_each_response_one_media_type(document: dict[str, Any]) -> None:
    for operation in list_operations(document):
        for response in operation["responses"].values():
            assert [*response.get("content", {"application/json": {}})] == ["application/json"]
    for node in iter_nodes(document):
        assert "anyOf" not in node
        assert "x-spec-enum-id" not in node
        assert node.get("type") != "array" or "items" in node
        assert node != {"readOnly": True}
        assert not {"enum", "minLength"} <= node.keys()


def test_choices_have_names(schemas: dict[str, Any]) -> None:
    for name, schema in schemas.items():
        for field, field_schema in schema.get("properties", {}).items():
            assert len(field_schema.get("enum", field_schema.get("items", {}).get("enum", []))) < 2, (name, field)
    assert schemas["Operation"]["properties"]["state"] == {"$ref": "#/components/schemas/OperationState"}
    assert schemas["ErrorContent"]["properties"]["code"]["$ref"] == "#/components/schemas/ErrorCode"
    assert schemas["RecentChange"]["properties"]["kind"] == schemas["Change"]["properties"]["kind"]
    assert {"NOT_FOUND", "UNKNOWN_PARAMETER"} < {*schemas["ErrorCode"]["enum"]}


def test_a_field_that_is_read_only_has_the_type_of_what_is_read(schemas: dict[str, Any]) -> None:
    read, created = schemas["Book"]["properties"], schemas["BookCreate"]["properties"]
    assert created["isbn13"] == {**read["isbn13"], "readOnly": True}
    assert schemas["WebhookChange"]["properties"]["key_encoding"]["readOnly"] is True


@pytest.mark.parametrize("address", ["/openapi.json", "/openapi/v1.json", "/openapi/v2.json"])
def test_each_document_is_complete_and_has_only_what_is_read(api: httpx.Client, address: str, settings: Any) -> None:
    """No schema that nothing refers to, and no text longer than one reads."""
    document = api.get(address).json()
    assert document["servers"] == [{"url": settings.PUBLIC_URL}]
    assert document["info"]["license"] == {"name": "MIT", "identifier": "MIT"}
    operations = list_operations(document)
    assert all({"description", "security"} <= operation.keys() for operation in operations)
    used = {tag for operation in operations for tag in operation["tags"]}
    assert [tag["name"] for tag in document["tags"]] == sorted(used)
    assert not any(tag["description"] == f"{tag['name']}." for tag in document["tags"])
    assert document["paths"]["/"]["get"]["tags"] == ["Library"]
    references = {node["$ref"].rpartition("/")[2] for node in iter_nodes(document) if "$ref" in node}
    assert references >= document["components"]["schemas"].keys()
    descriptions = [node["description"] for node in iter_nodes(document) if isinstance(node.get("description"), str)]
    assert max(map(len, descriptions)) < 1000


def test_a_document_changes_no_other(api: httpx.Client, document: dict[str, Any]) -> None:
    """Parts of a document are constants, which an earlier build must not have changed."""
    names = {name.removeprefix("V2") for name in api.get("/openapi.json").json()["components"]["schemas"]}
    assert document["components"]["schemas"].keys() <= names


def test_a_document_for_generators_has_no_webhooks(api: httpx.Client, document: dict[str, Any]) -> None:
    """openapi-generator makes models of them that nothing uses, of which TypeScript once compiled none."""
    assert document.pop("webhooks")
    assert api.get("/openapi/v2.json?webhooks=false").json() == document
    assert "webhooks" not in api.get("/openapi.json?webhooks=false").json()


def test_a_key_comes_first_because_clients_take_the_first_credential(document: dict[str, Any]) -> None:
    credentials = [operation["security"] for operation in list_operations(document)]
    assert {next(iter(requirements[0]), "") for requirements in credentials} == {"APIKey", ""}
    assert {} not in [requirement for requirements in credentials for requirement in requirements[:-1]]


def test_every_value_of_a_choice_has_a_name(schemas: dict[str, Any]) -> None:
    """Ruby does not load a constant without one."""
    assert schemas["EventSelector"]["x-enum-varnames"] == ["BOOK_CREATED", "BOOK_UPDATED", "BOOK_DELETED", "ALL"]
    values = [value for schema in schemas.values() for value in schema.get("enum", []) if value != "*"]
    assert all(str(value)[0].isalpha() for value in values)
    assert "events" not in schemas["OperationRequest"]["required"]
