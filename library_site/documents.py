"""What drf-spectacular cannot know of the OpenAPI document."""

from typing import Any


def bodies_required(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A body whose members may all be absent must itself be there."""
    for operations in result["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def limit_documented(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Where a limit is set any operation of the API may meet it; the answer has the shape of its other errors."""
    retry_after = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds until the caller may go on."}
    for address, operations in result["paths"].items():
        for operation in operations.values() if address.startswith("/api/") else ():
            operation["responses"]["429"] = {
                "description": "The caller has asked too often.",
                "headers": {"Retry-After": retry_after},
                "content": {"application/json": {"schema": schema_of(operation["responses"]["503"])}},
            }
    return result


def schema_of(response: dict[str, Any]) -> Any:
    return response["content"]["application/json"]["schema"]
