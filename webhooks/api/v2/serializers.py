"""Serializers of endpoints and deliveries in version 2."""

from typing import Any

import msgspec
from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from library_site.api.serializers import (
    RejectUnknownMixin,
    RFC3339Field,
    StrictChoiceField,
    StrictIntegerField,
    StringField,
    UTCDateTimeField,
)
from library_site.outbound.addresses import ForbiddenAddress
from webhooks.encryption import BASE64_SECRET_RULE, SECRET_PATTERN, SECRET_RULE
from webhooks.endpoints import EMPTY_SPAN_MESSAGE
from webhooks.models import MAX_IN_FLIGHT, MIN_IN_FLIGHT, Attempt, Delivery, Endpoint, SignatureForm
from webhooks.registry import ALL_KINDS, EVENT_KINDS, PING_KIND
from webhooks.ssrf import INVALID_URL_MESSAGE, MAX_URL_LENGTH, MIN_URL_LENGTH, validate_url

# The values of the delivery filters.
FILTER_CHOICES = {"state": Delivery.State.values, "kind": [*EVENT_KINDS, PING_KIND]}
SECRET_HELP = f"The library makes it if it is absent. In form C it is {BASE64_SECRET_RULE}."
KEY_ENCODINGS = ["utf-8", "base64"]
KEY_ENCODING_HELP = (
    "How the secret becomes the key of the HMAC: `utf-8` in forms A and B, where the key is the whole text of the"
    " secret, or `base64` in form C, where the key is the bytes whose standard base64 follows `whsec_`."
)
FORMS_HELP = (
    "How requests are signed: A signs the body, B the time and the body, and C does as Standard Webhooks says, so that"
    " its libraries and those of Svix verify them. A new webhook has B unless it says otherwise."
)
ENDPOINT_STATES = [Endpoint.State.ACTIVE.value, Endpoint.State.DISABLED.value]


@extend_schema_field(
    {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": {"type": "string", "enum": [*EVENT_KINDS, ALL_KINDS], "title": "EventSelector"},
        "if": {"contains": {"const": ALL_KINDS}},
        "then": {"maxItems": 1},
        "description": f"Kinds of events, or `{ALL_KINDS}` alone for all of them.",
    }
)
class KindsField(serializers.Field[str, Any, list[str], Any]):
    """A list of kinds, or of ALL_KINDS alone; stored as one text."""

    default_error_messages = {
        "kinds": f"Input should be a list of kinds, each once: {', '.join(EVENT_KINDS)},"
        f' or ["{ALL_KINDS}"] for all of them.'
    }

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, list) or not all(isinstance(kind, str) for kind in data):
            self.fail("kinds")
        are_known = data == [ALL_KINDS] or set(data) <= EVENT_KINDS.keys()
        if not data or not are_known or len(data) > len(set(data)):
            self.fail("kinds")
        return " ".join(data)

    def to_representation(self, value: str) -> list[str]:
        return value.split()


@extend_schema_field({"type": "string", "pattern": f"^{SECRET_PATTERN}$"})
class SecretField(serializers.RegexField):
    """A secret that the user brings; only the answer to that request shows it."""

    default_error_messages = {"invalid": f"Input should be {SECRET_RULE}."}

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{SECRET_PATTERN}\Z", trim_whitespace=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, str):
            self.fail("invalid")
        return super().run_validation(data)


class URLField(StringField):
    """The address of a receiver; `validate_url` says what else it must be."""

    def __init__(self, **options: Any) -> None:
        limits = {"min_length": MIN_URL_LENGTH, "max_length": MAX_URL_LENGTH}
        super().__init__(**limits, error_messages={"min_length": INVALID_URL_MESSAGE}, **options)


class WebhookChangeSerializer(RejectUnknownMixin):
    """The members of a change: each may be absent. Members that only answers have are ignored."""

    ignored_fields = frozenset({"id", "reason", "created_at", "pending_secret", "key_encoding"})

    url = URLField(required=False)
    events = KindsField(source="kinds", required=False)
    signature_form = StrictChoiceField(SignatureForm.values, source="form", required=False, help_text=FORMS_HELP)
    description = StringField(max_length=Endpoint._meta.get_field("description").max_length, required=False)
    in_flight_limit = StrictIntegerField(min_value=MIN_IN_FLIGHT, max_value=MAX_IN_FLIGHT, required=False)
    state = StrictChoiceField(ENDPOINT_STATES, required=False)

    def validate_url(self, url: str) -> str:
        try:
            validate_url(url, settings.WEBHOOKS_ALLOW_PRIVATE)
        except ForbiddenAddress as error:
            raise serializers.ValidationError(str(error), "url") from error
        return url


class WebhookCreateSerializer(WebhookChangeSerializer):
    """The members of a new webhook."""

    ignored_fields = WebhookChangeSerializer.ignored_fields | {"state"}

    url = URLField()
    events = KindsField(source="kinds")
    state = None  # type: ignore[assignment]  # a new one is active
    secret = SecretField(required=False, help_text=SECRET_HELP)


class WebhookSecretCreateSerializer(RejectUnknownMixin):
    """The new secret; the library makes one if it is absent."""

    secret = SecretField(required=False, help_text=SECRET_HELP)


class ReplayRequestSerializer(RejectUnknownMixin):
    """The events to send: of these kinds, from `after` on, and before `before`."""

    events = KindsField(source="kinds")
    after = RFC3339Field()
    before = RFC3339Field(required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["before"] and attrs["before"] <= attrs["after"]:
            raise serializers.ValidationError({"before": EMPTY_SPAN_MESSAGE})
        return attrs


class WebhookSerializer(serializers.ModelSerializer[Endpoint]):
    """An endpoint without its secret."""

    events = KindsField(source="kinds")
    signature_form = serializers.ChoiceField(SignatureForm.values, source="form", help_text=FORMS_HELP)
    in_flight_limit = serializers.IntegerField(min_value=MIN_IN_FLIGHT, max_value=MAX_IN_FLIGHT)
    state = serializers.ChoiceField(ENDPOINT_STATES)
    created_at = UTCDateTimeField()
    pending_secret = serializers.BooleanField(help_text="Whether a secret is pending.")
    key_encoding = serializers.ChoiceField(KEY_ENCODINGS, help_text=KEY_ENCODING_HELP)

    class Meta:
        model = Endpoint
        fields: tuple[str, ...] = (
            "id",
            "url",
            "events",
            "signature_form",
            "description",
            "in_flight_limit",
            "state",
            "reason",
            "created_at",
            "pending_secret",
            "key_encoding",
        )
        extra_kwargs = {name: {"required": True} for name in ("description", "reason")}


class NewWebhookSerializer(WebhookSerializer):
    """With its secret, this once."""

    secret = serializers.CharField()

    class Meta(WebhookSerializer.Meta):
        fields = (*WebhookSerializer.Meta.fields, "secret")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One event for one endpoint."""

    event = serializers.UUIDField(source="event.uuid")
    kind = serializers.CharField(source="event.kind")
    state = serializers.ChoiceField(Delivery.State.values)
    attempts = serializers.IntegerField(source="attempted")
    created_at = UTCDateTimeField()
    next_at = UTCDateTimeField(allow_null=True)
    finished_at = UTCDateTimeField(allow_null=True)

    class Meta:
        model = Delivery
        fields: tuple[str, ...] = (
            "id",
            "event",
            "kind",
            "state",
            "attempts",
            "created_at",
            "next_at",
            "finished_at",
        )


@extend_schema_field({"type": "string"})
class DecodedBytesField(serializers.Field[bytes, Any, str, Any]):
    """Bytes as text: a receiver may answer anything, so invalid UTF-8 is replaced."""

    def to_representation(self, value: bytes) -> str:
        return bytes(value).decode(errors="replace")


class DeliveryAttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One request: its answer, or the reason why there is none."""

    started_at = UTCDateTimeField()
    milliseconds = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    answer = DecodedBytesField()

    class Meta:
        model = Attempt
        fields = ("started_at", "milliseconds", "status", "error", "answer")
        extra_kwargs = {"error": {"required": True}}


class StoredJSONField(serializers.JSONField):
    """JSON as it is stored."""

    def to_representation(self, value: bytes) -> msgspec.Raw:
        return msgspec.Raw(bytes(value))


class SentDeliverySerializer(DeliverySerializer):
    """With its body and its attempts."""

    attempt_log = DeliveryAttemptSerializer(source="attempts", many=True)
    body = StoredJSONField(source="event.body")

    class Meta(DeliverySerializer.Meta):
        fields = (*DeliverySerializer.Meta.fields, "attempt_log", "body")
