"""Describes API keys in the OpenAPI document of version 2."""

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view

from library_site.api.documents.errors import document_error, document_invalid
from library_site.api.documents.schema import build_page_serializer, document_answer, request_example, response_header
from oauth.api.v2.serializers import APIKeySerializer, NewAPIKeySerializer
from oauth.api_keys import TooManyKeys

KEY_EXAMPLE = {
    "id": "1f8e0c2b7a96",
    "name": "Night import",
    "scopes": "read write",
    "created_at": "2026-01-31T09:30:00.000000Z",
    "expires_at": None,
    "last_used_at": None,
}
KEY_TEXT_EXAMPLE = "lib_1f8e0c2b7a96_9mZ0c3QvRk1yT5uW7xY2aB4dE6fG8hJ0kL1nP3qS5tU"
KEY_ID = OpenApiParameter(
    "key_id", {"type": "string", "pattern": "^[0-9a-f]{12}$"}, OpenApiParameter.PATH, description="The key's id."
)


APIKeyPageSerializer = build_page_serializer(APIKeySerializer, "All keys; there is never more than one page.")

document_api_keys = extend_schema_view(
    list=extend_schema(
        summary="List your API keys",
        description="Your keys that are neither revoked nor expired.",
        responses={
            200: OpenApiResponse(
                APIKeyPageSerializer,
                "The keys.",
                [OpenApiExample("Keys", {"results": [KEY_EXAMPLE], "next": None, "previous": None})],
            ),
        },
    ),
    create=extend_schema(
        summary="Make an API key",
        description="The key has no more scopes than the credential that makes it, and ends with it at the latest.",
        examples=[request_example("A key", {"name": "Night import", "scopes": "read write"})],
        parameters=[response_header("Location", "The address of the new key.", 201)],
        responses={
            201: OpenApiResponse(
                NewAPIKeySerializer,
                "The new key, shown this once.",
                [OpenApiExample("Key", {**KEY_EXAMPLE, "key": KEY_TEXT_EXAMPLE})],
            ),
            **document_error(TooManyKeys, "You have the largest number of keys that a user may have."),
            **document_invalid("scopes", "There is no scope 'all'; there are read, write, webhooks."),
        },
    ),
    retrieve=extend_schema(
        description="Everything except the key itself.",
        responses={
            200: document_answer(APIKeySerializer, "The key.", KEY_EXAMPLE),
        },
    ),
    destroy=extend_schema(
        operation_id="revoke_api_key",
        summary="Revoke an API key",
        description="The key and the keys that it made are revoked at once.",
        responses={
            204: OpenApiResponse(description="The key is revoked."),
        },
    ),
)
