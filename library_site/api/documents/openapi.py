"""Builds the OpenAPI documents: one for each version, and one for all versions."""

import json
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from drf_spectacular.generators import SchemaGenerator

from library_site.http import versions
from library_site.http.versions import API_ROOT

Document = dict[str, Any]
BUILD_LOCK = Lock()
LICENCE = {"name": "MIT", "identifier": "MIT"}
TAGS = {
    "API keys": "Credentials of programs.",
    "Books": "The books of the library, one by one, in pages and many together.",
    "History": "What changed, when, by whom and through what.",
    "Library": "The way to the documentation.",
    "Operations": "Changes of many books, which a worker makes.",
    "Webhooks": "Requests to other programs when books change, and the stream of events.",
}


def get_document(numbers: tuple[int, ...]) -> Document:
    """Returns the cached document. The lock is needed because drf-spectacular is not thread-safe."""
    with BUILD_LOCK:
        return build_document(numbers)


@cache
def build_document(numbers: tuple[int, ...]) -> Document:
    """OpenAPI 3.1. If there are several versions, names of all but the first get the version number as a prefix."""
    first, *others = (build_version(number) for number in numbers)
    for number, other in zip(numbers[1:], others, strict=True):
        other["paths"] = {path: methods for path, methods in other["paths"].items() if path not in first["paths"]}
        drop_unused_schemas(other)
        addition = prefix_names(other, number)
        first["paths"] |= addition["paths"]
        first["components"]["schemas"] |= addition["components"]["schemas"]
        if "webhooks" in addition:
            first["webhooks"] = addition["webhooks"]
    first["tags"] = describe_tags(first)
    return first


def build_version(number: int) -> Document:
    document: Document = SchemaGenerator(api_version=f"v{number}").get_schema(request=None, public=True)
    return document


def drop_unused_schemas(document: Document) -> None:
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    for name in [name for name in schemas if f'"#/components/schemas/{name}"' not in text]:
        del schemas[name]


def describe_tags(document: Document) -> list[Document]:
    names = sorted({tag for operation in iter_operations(document) for tag in operation["tags"]})
    return [{"name": name, "description": TAGS.get(name.partition(",")[0], f"{name}.")} for name in names]


def prefix_names(document: Document, number: int) -> Document:
    text = json.dumps(document).replace("#/components/schemas/", f"#/components/schemas/V{number}")
    result: Document = json.loads(text)
    schemas = result["components"]["schemas"]
    result["components"]["schemas"] = {f"V{number}{name}": schema for name, schema in schemas.items()}
    for operation in iter_operations(result):
        operation["tags"] = [f"{tag}, version {number}" for tag in operation["tags"]]
        operation["operationId"] = f"v{number}_{operation['operationId']}"
    return result


def iter_operations(document: Document, root: str = "/") -> Iterator[Document]:
    """Yields the operations of paths that begin with the root."""
    path_items = (methods for path, methods in document["paths"].items() if path.startswith(root))
    return (operation for methods in path_items for operation in methods.values())


def mark_required_bodies(result: Document, **_: Any) -> Document:
    """A hook of drf-spectacular: a body is required, even if all fields are optional, except with `x-body-optional`."""
    for operation in iter_operations(result):
        is_optional = operation.pop("x-body-optional", False)
        if "requestBody" in operation:
            operation["requestBody"]["required"] = not is_optional
    return result


def declare_versions(result: Document, generator: SchemaGenerator, **_: Any) -> Document:
    """A hook: describes the service and its tags, and marks operations of deprecated versions.

    Raises CommandError: only `manage.py spectacular` can request an unknown version.
    """
    if generator.api_version not in (names := [f"v{number}" for number in versions.get_versions()]):
        raise CommandError(f"--api-version takes one of {', '.join(names)}.")
    result["info"] |= {"version": settings.SPECTACULAR_SETTINGS["VERSION"], "license": LICENCE}
    result["servers"] = [{"url": settings.PUBLIC_URL}]
    result["tags"] = describe_tags(result)
    for operation in iter_operations(result):
        operation.setdefault("description", f"{operation['summary']}.")
        # An operation without a credential must say so explicitly.
        operation.setdefault("security", [{}])
    number = int(generator.api_version.removeprefix("v"))
    if settings.API_LIFECYCLES.get(number, {}).get("deprecated_on"):
        for operation in iter_operations(result, API_ROOT):
            operation["deprecated"] = True
    return result
