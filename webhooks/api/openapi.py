"""Describes outgoing events in the OpenAPI documents."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from webhooks import signing
from webhooks.registry import EVENT_KINDS, PING_KIND, EventKind

TIME_EXAMPLE = "2026-01-31T09:30:00.000000Z"
EVENT_ID = "3f6b0d0e-5d0c-4d3b-9a65-0f6d1c1f6a52"
PING_PAYLOAD = {"type": "object", "properties": {"endpoint": {"type": "integer"}}, "required": ["endpoint"]}
PING = EventKind(PING_KIND, "Sent by hand, to try a webhook.", PING_PAYLOAD, {"endpoint": 1})


def event_schema(kinds: list[str], data: Mapping[str, Any]) -> dict[str, Any]:
    properties = {
        "id": {"type": "string", "format": "uuid", "description": "The same at each attempt: deduplicate by it."},
        "event": {"type": "string", "enum": kinds, **({"title": "EventKind"} if len(kinds) > 1 else {})},
        "timestamp": {"type": "string", "format": "date-time"},
        "api_version": {"type": "integer", "enum": [settings.EVENT_API_VERSION]},
        "data": data,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def stream_schema() -> dict[str, Any]:
    payloads: list[Mapping[str, Any]] = []
    for kind in EVENT_KINDS.values():
        if kind.payload not in payloads:
            payloads.append(kind.payload)
    schema = event_schema(list(EVENT_KINDS), payloads[0] if len(payloads) == 1 else {"anyOf": payloads})
    return {"title": "Event", **schema}


def event_example(kind: EventKind) -> dict[str, Any]:
    return {
        "id": EVENT_ID,
        "event": kind.name,
        "timestamp": TIME_EXAMPLE,
        "api_version": settings.EVENT_API_VERSION,
        "data": kind.example,
    }


def document_events(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: adds the webhooks to the document of the version that their bodies have."""
    if generator.api_version == f"v{settings.EVENT_API_VERSION}":
        result["webhooks"] = {kind.name: {"post": document_event(kind)} for kind in (*EVENT_KINDS.values(), PING)}
    return result


def document_event(kind: EventKind) -> dict[str, Any]:
    schema = event_schema([kind.name], kind.payload)
    content = {"schema": schema, "examples": {"Event": {"value": event_example(kind)}}}
    return {
        "operationId": f"receive_{kind.name.replace('.', '_')}",
        "summary": kind.sentence,
        "description": "At least once, and in any order. Redirects are not followed.",
        "security": [{}],
        "parameters": [
            header(signing.EVENT, {"type": "string", "enum": [kind.name]}, "The kind of the event.", required=True),
            *signature_headers(),
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "2XX": {"description": "The event was received."},
            "default": {"description": "The event is sent again, five times in all, after a longer time each."},
        },
    }


def signature_headers() -> list[dict[str, Any]]:
    """Returns the headers of forms A and B and those of form C. A request has only one of these sets."""
    signature = (
        "Forms A and B: HMAC-SHA256 with the whole secret as key, in hexadecimal: `t=<timestamp>,s=<hex>` over"
        " `<timestamp>.<body>` (form B), or `sha256=<hex>` over the body alone (form A), which anybody who has read the"
        " request can send again."
    )
    standard_signature = (
        "Form C: `v1,<base64>` of the HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>`. The key is the bytes"
        " whose base64 follows `whsec_` in the secret. While a secret is pending there are two, with a space between."
    )
    base64_pattern = "v1,[A-Za-z0-9+/]{43}="
    headers = [
        (signing.TIMESTAMP, "^[0-9]+$", "Forms A and B: the time of the request, in Unix seconds."),
        (signing.SIGNATURE, "^(sha256=|t=[0-9]+,s=)[0-9a-f]{64}$", signature),
        (signing.STANDARD_ID, "^[0-9a-f-]{36}$", "Form C: the `id` of the event."),
        (signing.STANDARD_TIMESTAMP, "^[0-9]+$", "Form C: the time of the request, in Unix seconds."),
        (signing.STANDARD_SIGNATURE, f"^{base64_pattern}( {base64_pattern})*$", standard_signature),
    ]
    return [
        header(name, {"type": "string", "pattern": pattern}, description, required=False)
        for name, pattern, description in headers
    ]


def header(name: str, schema: dict[str, Any], description: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": required, "schema": schema, "description": description}
