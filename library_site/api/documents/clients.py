"""Prepares the documents of version 2 and later for client generators: named schemas, enums and pages.

The schemas of version 1 stay as they were published.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from drf_spectacular.generators import SchemaGenerator

Document = dict[str, Any]
ANY_VALUE = "*"


def name_schemas(result: Document, generator: SchemaGenerator, **_: Any) -> Document:
    """A hook of drf-spectacular."""
    if generator.api_version == "v1":
        return result
    # A copy, because parts of the document are module constants.
    result = deepcopy(result)
    operations = [operation for methods in result["paths"].values() for operation in methods.values()]
    schemes = result["components"].get("securitySchemes", {})
    keys = {name for name, scheme in schemes.items() if scheme["type"] == "apiKey"}
    for operation in operations:
        # Some clients take the first credential. A key needs nothing else.
        operation["security"].sort(key=lambda requirement: (not requirement, not keys.issuperset(requirement)))
    schemas = result["components"]["schemas"]
    move_titled(result["paths"], schemas)
    for name, schema in schemas.items():
        copy_types(name, schema, schemas)
    for schema in schemas.values():
        # Request bodies reject unknown fields. Read-only fields can also appear in an event.
        for field in schema.get("properties", {}).values() if schema.get("additionalProperties") is not False else ():
            field.pop("readOnly", None)
    name_enums(schemas)
    for node in iter_nodes(result):
        node.pop("x-spec-enum-id", None)
        if "enum" in node:
            # A choice needs no length. Generators would use the bound instead of the enum.
            node.pop("minLength", None)
    return result


def iter_nodes(node: Any) -> Iterator[Document]:
    """Yields all JSON objects of a document."""
    if isinstance(node, dict):
        yield node
    for child in list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from iter_nodes(child)


def move_titled(paths: Document, schemas: Document) -> None:
    """Turns each schema with a title into a component, inner schemas first."""
    for node in iter_nodes(paths):
        for key in ("schema", "items"):
            inner = node.get(key)
            if isinstance(inner, dict) and "title" in inner:
                name = inner["title"]
                move_titled(inner, schemas)
                schemas[name] = {field: value for field, value in inner.items() if field != "title"}
                node[key] = refer_to(name)


def refer_to(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


def copy_types(name: str, schema: Document, schemas: Document) -> None:
    """Copies the types of read-only fields, such as the id in BookCreate, from the response schema, such as Book."""
    bases = sorted((other for other in schemas if name.startswith(other) and other != name), key=len)
    for field, property_schema in schema.get("properties", {}).items():
        for base in bases:
            if property_schema == {"readOnly": True} and field in schemas[base].get("properties", {}):
                schema["properties"][field] = {**schemas[base]["properties"][field], "readOnly": True}


def name_enums(schemas: Document) -> None:
    """Turns each enum of strings into a component, named after the first field in the shortest-named component."""
    names: dict[tuple[str, ...], str] = {}
    for component in sorted(schemas, key=lambda name: (len(name), name)):
        for field, schema in schemas[component].get("properties", {}).items():
            holder = schema.get("items", schema)
            values = holder.get("enum")
            if not values or len(values) < 2 or not all(isinstance(value, str) for value in values):
                continue
            name = names.setdefault(
                tuple(sorted(values)), holder.get("title") or component + field.title().replace("_", "")
            )
            schemas[name] = {"type": "string", "enum": values}
            if ANY_VALUE in values:
                # It has no letter of which generators could make a name.
                schemas[name]["x-enum-varnames"] = [
                    "ALL" if value == ANY_VALUE else re.sub(r"\W+", "_", value).upper() for value in values
                ]
            reference = {"description": holder["description"]} if "description" in holder else {}
            reference |= {"readOnly": True} if holder.get("readOnly") else {}
            schema_of_choice = refer_to(name) | reference
            if holder is schema:
                schemas[component]["properties"][field] = schema_of_choice
            else:
                schema["items"] = schema_of_choice
