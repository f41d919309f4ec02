"""The serializers of API keys in version 2."""

from typing import Any

from django.core.exceptions import ValidationError
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from library_site.api.serializers import NonBlankField, RejectUnknownMixin, RFC3339Field, StringField, UTCDateTimeField
from oauth.models import APIKey
from oauth.scopes import SCOPES, ScopeSet, parse_scopes
from oauth.server.registration import MAX_NAME_LENGTH, validate_name

SCOPE_PATTERN = "|".join(SCOPES)


@extend_schema_field({"type": "string", "pattern": f"^({SCOPE_PATTERN})( ({SCOPE_PATTERN}))*$"})
class ScopesField(StringField):
    """Space-separated."""

    default_error_messages = {"scope": "{words}", "none": "It names no scope."}

    def to_internal_value(self, data: str) -> Any:
        try:
            scopes: ScopeSet = parse_scopes(super().to_internal_value(data))
        except ValidationError as error:
            self.fail("scope", words=error.message)
        return scopes or self.fail("none")


class APIKeyCreateSerializer(RejectUnknownMixin):
    """Members that only answers have may be sent, and are ignored."""

    ignored_fields = frozenset({"id", "created_at", "last_used_at"})

    name = NonBlankField(max_length=MAX_NAME_LENGTH, validators=[validate_name])
    scopes = ScopesField(max_length=200, allow_blank=False)
    expires_at = RFC3339Field(required=False, allow_null=True, default=None)


class APIKeySerializer(serializers.ModelSerializer[APIKey]):
    """A key without its secret."""

    id = serializers.CharField(source="prefix")
    created_at = UTCDateTimeField()
    expires_at = UTCDateTimeField(allow_null=True)
    last_used_at = UTCDateTimeField(allow_null=True)

    class Meta:
        model = APIKey
        fields = ("id", "name", "scopes", "created_at", "expires_at", "last_used_at")


class NewAPIKeySerializer(APIKeySerializer):
    """With the key, this once."""

    key = serializers.CharField()

    class Meta(APIKeySerializer.Meta):
        fields = (*APIKeySerializer.Meta.fields, "key")  # type: ignore[assignment]  # one more
