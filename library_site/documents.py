"""What drf-spectacular cannot know of the OpenAPI document."""

from typing import Any


def bodies_required(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A body whose members may all be absent must itself be there."""
    for operations in result["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result
