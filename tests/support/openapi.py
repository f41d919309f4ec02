"""Reads OpenAPI documents."""

from collections.abc import Iterator
from typing import Any

import httpx
from jsonschema import Draft202012Validator

JSON = "application/json"


def is_valid(document: dict[str, Any], schema: dict[str, Any], value: object) -> bool:
    """Tells whether the value matches a schema, which may refer to components of the document."""
    complete_schema = {**schema, "components": document["components"]}
    return bool(Draft202012Validator(complete_schema).is_valid(value))


def list_contents(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields every JSON body of the document, with the operation that reads or returns it."""
    for address, operations in document["paths"].items():
        for method, operation in operations.items():
            for name, part in {"request": operation.get("requestBody", {}), **operation["responses"]}.items():
                if "content" in part:
                    yield f"{method} {address} {name}", part["content"][JSON]


def get_body_schema(document: dict[str, Any], method: str, address: str) -> dict[str, Any]:
    """Returns the schema of the request body of an operation."""
    schema: dict[str, Any] = document["paths"][address][method]["requestBody"]["content"][JSON]["schema"]
    return schema


DOCUMENT_URL, V1_DOCUMENT_URL, V2_DOCUMENT_URL = "/openapi.json", "/openapi/v1.json", "/openapi/v2.json"
HOOKS, HOOK, EVENTS = "/api/v2/webhooks", "/api/v2/webhooks/{webhook_id}", "/api/v2/events"
SECRET, PROMOTE, PING, REPLAY = (f"{HOOK}/{action}" for action in ("secret", "secret/promote", "ping", "replay"))
DELIVERIES, DELIVERY = f"{HOOK}/deliveries", f"{HOOK}/deliveries/{{delivery_id}}"
REDELIVER = f"{DELIVERY}/redeliver"


def get_response(document: dict[str, Any], method: str, address: str, status: int) -> dict[str, Any]:
    response: dict[str, Any] = document["paths"][address][method]["responses"][str(status)]
    return response


def collect_operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (method, path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }


def list_undocumented_responses(
    document: dict[str, Any], responses: list[tuple[str, str, httpx.Response]]
) -> list[Any]:
    """Returns the responses that equal no documented example."""
    return [
        (method, path, response.status_code, response.json()["error"])
        for method, path, response in responses
        if drop_request_id(response.json())
        not in [
            drop_request_id(example["value"])
            for example in get_response(document, method, path, response.status_code)["content"][JSON][
                "examples"
            ].values()
        ]
    ]


def check_responses(document: dict[str, Any], responses: list[tuple[str, str, int, httpx.Response]]) -> None:
    """Checks that each has the status that is named here, and the headers and the body that are documented."""
    for method, path, status, response in responses:
        assert response.status_code == status, (method, path)
        documented = get_response(document, method, path, status)
        # Those of a next page, and of an operation that goes on.
        optional = {"link", "retry-after"}
        assert response.headers.keys() >= {name.lower() for name in documented.get("headers", {})} - optional
        assert bool(response.content) == ("content" in documented), (method, path)
        for content in documented.get("content", {}).values():
            assert is_valid(document, content["schema"], response.json()), (method, path)


def drop_request_id(response: dict[str, Any]) -> dict[str, Any]:
    """Returns the error without its request id, which differs in every request."""
    return {"error": {name: value for name, value in response["error"].items() if name != "requestId"}}
