"""The OpenAPI documents: one for each version, and one of all."""

import json
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from drf_spectacular.generators import SchemaGenerator

from library_site.http.versions import API_ROOT

Document = dict[str, Any]
BUILD_LOCK = Lock()


def get_document(numbers: tuple[int, ...]) -> Document:
    """Made once. drf-spectacular is not made for threads."""
    with BUILD_LOCK:
        return build_document(numbers)


@cache
def build_document(numbers: tuple[int, ...]) -> Document:
    """OpenAPI 3.1. Where there are several versions, names of all but the first are told apart by their number."""
    first, *others = (build_version(number) for number in numbers)
    for number, other in zip(numbers[1:], others, strict=True):
        more = prefix_names(other, number)
        first["paths"] |= {path: methods for path, methods in more["paths"].items() if path not in first["paths"]}
        first["components"]["schemas"] |= more["components"]["schemas"]
        if "webhooks" in more:
            first["webhooks"] = more["webhooks"]
    return first


def build_version(number: int) -> Document:
    whole: Document = SchemaGenerator(api_version=f"v{number}").get_schema(request=None, public=True)
    return whole


def prefix_names(whole: Document, number: int) -> Document:
    referring = json.dumps(whole).replace("#/components/schemas/", f"#/components/schemas/V{number}")
    renamed: Document = json.loads(referring)
    schemas = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {f"V{number}{name}": schema for name, schema in schemas.items()}
    for operation in iter_operations(renamed):
        operation["tags"] = [f"{tag}, version {number}" for tag in operation["tags"]]
        operation["operationId"] = f"v{number}_{operation['operationId']}"
    return renamed


def iter_operations(whole: Document, root: str = "/") -> Iterator[Document]:
    """Those of addresses below the root."""
    below = (methods for path, methods in whole["paths"].items() if path.startswith(root))
    return (operation for methods in below for operation in methods.values())


def mark_required_bodies(result: Document, **_: Any) -> Document:
    """A hook of drf-spectacular: a body of optional members must itself be there, unless it says `x-body-optional`."""
    for operation in iter_operations(result):
        optional = operation.pop("x-body-optional", False)
        if "requestBody" in operation:
            operation["requestBody"]["required"] = not optional
    return result


def declare_versions(result: Document, generator: SchemaGenerator, **_: Any) -> Document:
    """A hook: info.version is the service's own; the operations of a deprecated version are marked."""
    result["info"]["version"] = settings.SPECTACULAR_SETTINGS["VERSION"]
    number = int(str(generator.api_version).removeprefix("v"))
    if settings.API_LIFECYCLES.get(number, {}).get("deprecated_on"):
        for operation in iter_operations(result, API_ROOT):
            operation["deprecated"] = True
    return result


def document_challenges(result: Document, **_: Any) -> Document:
    """A hook: who refuses a credential tells what would do."""
    challenge = {"schema": {"type": "string"}, "description": "What would do (RFC 6750, 3)."}
    for operation in iter_operations(result, API_ROOT):
        for status in operation["responses"].keys() & {"401", "403"}:
            operation["responses"][status]["headers"] = {"WWW-Authenticate": challenge}
    return result


def document_rate_limit(result: Document, **_: Any) -> Document:
    """A hook: any operation of the API may meet a limit that is set, and answers in the shape of its other errors."""
    retry_after = {"schema": {"type": "integer", "minimum": 1}, "description": "Seconds until the caller may go on."}
    for operation in iter_operations(result, API_ROOT):
        error = operation["responses"]["503"]["content"]["application/json"]["schema"]
        operation["responses"]["429"] = {
            "description": "The caller has asked too often.",
            "headers": {"Retry-After": retry_after},
            "content": {"application/json": {"schema": error}},
        }
    return result
