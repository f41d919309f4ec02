"""API keys as version 2 reads and shows them."""

import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from books.api.v2.serializers import Instant, Words
from books.serializers import Closed, Text
from oauth.models import APIKey
from oauth.scopes import SCOPES, Granted, UnknownScope, parsed
from oauth.server.registration import LONGEST_NAME, check_name

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
ANY_SCOPE = "|".join(SCOPES)


@extend_schema_field({"type": "string", "pattern": f"^({ANY_SCOPE})( ({ANY_SCOPE}))*$"})
class ScopesField(Text):
    """Space-separated."""

    default_error_messages = {"scope": "{words}", "none": "It names no scope."}

    def to_internal_value(self, data: str) -> Any:
        try:
            named: Granted = parsed(super().to_internal_value(data))
        except UnknownScope as error:
            self.fail("scope", words=error)
        return named or self.fail("none")


class ZonedInstant(Instant):
    """Nothing but RFC 3339, 5.6: a day alone, or a time without its zone, could be another moment than was meant."""

    def to_internal_value(self, value: Any) -> Any:
        if not isinstance(value, str) or not RFC3339.fullmatch(value):
            self.fail("invalid", format="YYYY-MM-DDThh:mm:ssZ")
        return super().to_internal_value(value)


class APIKeyCreateSerializer(Closed):
    """Who makes a key may name what was read, and it is passed over."""

    passed_over = frozenset({"id", "created_at", "last_used_at"})

    name = Words(max_length=LONGEST_NAME, validators=[check_name])
    scopes = ScopesField(max_length=200, allow_blank=False)
    expires_at = ZonedInstant(required=False, allow_null=True, default=None)


class APIKeySerializer(serializers.ModelSerializer[APIKey]):
    """A key without its secret."""

    id = serializers.CharField(source="prefix")
    created_at = Instant()
    expires_at = Instant(allow_null=True)
    last_used_at = Instant(allow_null=True)

    class Meta:
        model = APIKey
        fields = ("id", "name", "scopes", "created_at", "expires_at", "last_used_at")


class NewAPIKeySerializer(APIKeySerializer):
    """With the key, this once."""

    key = serializers.CharField()

    class Meta(APIKeySerializer.Meta):
        fields = (*APIKeySerializer.Meta.fields, "key")  # type: ignore[assignment]  # one more
