"""Describes API keys in the OpenAPI document of version 2."""

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_serializer,
    extend_schema_view,
)
from rest_framework import serializers

from library_site.api.schema import (
    BODY_ERRORS,
    COMMON_ERRORS,
    error_schema,
    invalid_schema,
    response_header,
    unknown_parameter_schema,
)
from oauth.api.v2.serializers import APIKeyCreateSerializer, APIKeySerializer, NewAPIKeySerializer

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
NOT_FOUND = error_schema("You have no valid key with this id.", "NOT_FOUND", "API key not found")
UNKNOWN_PARAMETER = unknown_parameter_schema("limit", "It is not known here; the nearest name is version.")


@extend_schema_serializer(many=False)
class APIKeysSerializer(serializers.Serializer[None]):
    """All webhooks; there is never more than one page."""

    results = APIKeySerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


document_api_keys = extend_schema_view(
    list=extend_schema(
        operation_id="list_api_keys",
        summary="List your API keys",
        description="Your keys that are neither revoked nor expired.",
        tags=["API keys"],
        responses={
            200: OpenApiResponse(
                APIKeysSerializer,
                "The keys.",
                [OpenApiExample("Keys", {"results": [KEY_EXAMPLE], "next": None, "previous": None})],
            ),
            400: UNKNOWN_PARAMETER,
            **COMMON_ERRORS,
        },
    ),
    create=extend_schema(
        operation_id="create_api_key",
        summary="Make an API key",
        description="The key has no more scopes than the credential that makes it, and ends with it at the latest.",
        tags=["API keys"],
        request=APIKeyCreateSerializer,
        examples=[OpenApiExample("A key", {"name": "Night import", "scopes": "read write"}, request_only=True)],
        parameters=[response_header("Location", "The address of the new key.", 201)],
        responses={
            201: OpenApiResponse(
                NewAPIKeySerializer,
                "The new key, shown this once.",
                [OpenApiExample("Key", {**KEY_EXAMPLE, "key": KEY_TEXT_EXAMPLE})],
            ),
            409: error_schema(
                "You have the largest number of keys that a user may have.",
                "CONFLICT",
                "You have 100 API keys: revoke one first",
            ),
            **BODY_ERRORS,
            422: invalid_schema("scopes", "There is no scope 'all'; there are read, write, webhooks."),
            **COMMON_ERRORS,
        },
    ),
    retrieve=extend_schema(
        operation_id="read_api_key",
        summary="Read an API key",
        description="Everything except the key itself.",
        tags=["API keys"],
        parameters=[KEY_ID],
        responses={
            200: OpenApiResponse(APIKeySerializer, "The key.", [OpenApiExample("Key", KEY_EXAMPLE)]),
            400: UNKNOWN_PARAMETER,
            404: NOT_FOUND,
            **COMMON_ERRORS,
        },
    ),
    destroy=extend_schema(
        operation_id="revoke_api_key",
        summary="Revoke an API key",
        description="The key and the keys that it made are revoked at once.",
        tags=["API keys"],
        parameters=[KEY_ID],
        responses={
            204: OpenApiResponse(description="The key is revoked."),
            400: UNKNOWN_PARAMETER,
            404: NOT_FOUND,
            **COMMON_ERRORS,
        },
    ),
)
