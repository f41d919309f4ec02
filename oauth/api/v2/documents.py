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

from library_site.api.error_documents import ErrorDocument, document_invalid, document_refusal
from library_site.api.schema import document_answer, request_example, response_header
from library_site.http.refusals import Failure
from oauth.api.v2.serializers import APIKeyCreateSerializer, APIKeySerializer, NewAPIKeySerializer
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
NOT_FOUND = {404: ErrorDocument("You have no valid key with this id.", Failure(404, "API key not found"))}


@extend_schema_serializer(many=False)
class APIKeyPageSerializer(serializers.Serializer[None]):
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
                APIKeyPageSerializer,
                "The keys.",
                [OpenApiExample("Keys", {"results": [KEY_EXAMPLE], "next": None, "previous": None})],
            ),
        },
    ),
    create=extend_schema(
        operation_id="create_api_key",
        summary="Make an API key",
        description="The key has no more scopes than the credential that makes it, and ends with it at the latest.",
        tags=["API keys"],
        request=APIKeyCreateSerializer,
        examples=[request_example("A key", {"name": "Night import", "scopes": "read write"})],
        parameters=[response_header("Location", "The address of the new key.", 201)],
        responses={
            201: OpenApiResponse(
                NewAPIKeySerializer,
                "The new key, shown this once.",
                [OpenApiExample("Key", {**KEY_EXAMPLE, "key": KEY_TEXT_EXAMPLE})],
            ),
            **document_refusal(TooManyKeys, "You have the largest number of keys that a user may have."),
            **document_invalid("scopes", "There is no scope 'all'; there are read, write, webhooks."),
        },
    ),
    retrieve=extend_schema(
        operation_id="read_api_key",
        summary="Read an API key",
        description="Everything except the key itself.",
        tags=["API keys"],
        parameters=[KEY_ID],
        responses={
            200: document_answer(APIKeySerializer, "The key.", KEY_EXAMPLE),
            **NOT_FOUND,
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
            **NOT_FOUND,
        },
    ),
)
