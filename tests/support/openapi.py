"""Reading of OpenAPI documents."""

from collections.abc import Iterator
from typing import Any

import httpx
from jsonschema import Draft202012Validator

JSON = "application/json"


def accepts(document: dict[str, Any], schema: dict[str, Any], value: object) -> bool:
    """Whether the value is valid by a schema that may refer to the document's components."""
    whole = {**schema, "components": document["components"]}
    return bool(Draft202012Validator(whole).is_valid(value))


def contents(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every JSON body of the document, with the operation that takes or gives it."""
    for address, operations in document["paths"].items():
        for method, operation in operations.items():
            for name, bearer in {"request": operation.get("requestBody", {}), **operation["responses"]}.items():
                if "content" in bearer:
                    yield f"{method} {address} {name}", bearer["content"][JSON]


def body(document: dict[str, Any], method: str, address: str) -> dict[str, Any]:
    """The schema of an operation's body."""
    schema: dict[str, Any] = document["paths"][address][method]["requestBody"]["content"][JSON]["schema"]
    return schema


ALL, FIRST, SECOND = "/openapi.json", "/openapi/v1.json", "/openapi/v2.json"
HOOKS, HOOK, EVENTS = "/api/v2/webhooks", "/api/v2/webhooks/{webhook_id}", "/api/v2/events"
SECRET, PROMOTE, PING, REPLAY = (f"{HOOK}/{action}" for action in ("secret", "secret/promote", "ping", "replay"))
DELIVERIES, DELIVERY = f"{HOOK}/deliveries", f"{HOOK}/deliveries/{{delivery_id}}"
REDELIVER = f"{DELIVERY}/redeliver"


def response(document: dict[str, Any], method: str, address: str, status: int) -> dict[str, Any]:
    found: dict[str, Any] = document["paths"][address][method]["responses"][str(status)]
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(method, path): one for path in document["paths"] for method, one in document["paths"][path].items()}


def unreal_examples(document: dict[str, Any], answers: list[tuple[str, str, httpx.Response]]) -> list[Any]:
    """The answers that no documented example is like."""
    return [
        (method, path, answer.status_code, answer.json()["error"])
        for method, path, answer in answers
        if unmarked(answer.json())
        not in [
            unmarked(example["value"])
            for example in response(document, method, path, answer.status_code)["content"][JSON]["examples"].values()
        ]
    ]


def unmarked(answer: dict[str, Any]) -> dict[str, Any]:
    """An error without what differs from one request to the next."""
    return {"error": {name: value for name, value in answer["error"].items() if name != "requestId"}}
