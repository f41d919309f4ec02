"""Endpoints and deliveries as version 2 reads and shows them."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from books.api.v2.serializers import Instant
from books.serializers import Closed, Integer, Text
from oauth.api.v2.serializers import ZonedInstant
from webhooks.encryption import GIVEN, GIVEN_WORDS
from webhooks.models import LEAST_IN_FLIGHT, MOST_IN_FLIGHT, Attempt, Delivery, Endpoint, Form
from webhooks.registry import ALL, KINDS, PING
from webhooks.replaying import NO_SPAN
from webhooks.ssrf import LONGEST_URL, RefusedAddress, check_url

# What deliveries are found by.
CHOICES = {"state": Delivery.State.values, "kind": [*KINDS, PING]}
STATES = [Endpoint.State.ACTIVE.value, Endpoint.State.DISABLED.value]


@extend_schema_field(
    {
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "anyOf": [{"items": {"enum": list(KINDS)}}, {"items": {"enum": [ALL]}}],
    }
)
class KindsField(serializers.Field[str, Any, list[str], Any]):
    """A list of kinds, or of ALL alone; stored as one text."""

    default_error_messages = {
        "kinds": f'Input should be a list of kinds, each once: {", ".join(KINDS)}, or ["{ALL}"] for all of them.'
    }

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, list) or not all(isinstance(kind, str) for kind in data):
            self.fail("kinds")
        known = data == [ALL] or set(data) <= KINDS.keys()
        if not data or not known or len(data) > len(set(data)):
            self.fail("kinds")
        return " ".join(data)

    def to_representation(self, value: str) -> list[str]:
        return value.split()


@extend_schema_field({"type": "string", "pattern": f"^{GIVEN}$"})
class SecretField(serializers.RegexField):
    """Never shown but in the answer that takes it."""

    default_error_messages = {"invalid": f"Input should be {GIVEN_WORDS}."}

    def __init__(self, **options: Any) -> None:
        super().__init__(rf"^{GIVEN}\Z", trim_whitespace=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if data is not serializers.empty and not isinstance(data, str):
            self.fail("invalid")
        return super().run_validation(data)


class OneOf(serializers.ChoiceField):
    """The stock message repeats the input, which may be no text that can be sent."""

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices, **options)
        self.error_messages["invalid_choice"] = f"Input should be one of {', '.join(choices)}."


class EndpointChangeSerializer(Closed):
    """What a change takes: every member may be absent. What is shown besides may be sent back."""

    passed_over = frozenset({"id", "reason", "created_at", "pending_secret"})

    url = Text(max_length=LONGEST_URL, required=False)
    events = KindsField(source="kinds", required=False)
    signature_form = OneOf(Form.values, source="form", required=False)
    description = Text(max_length=Endpoint._meta.get_field("description").max_length, required=False)
    in_flight_limit = Integer(min_value=LEAST_IN_FLIGHT, max_value=MOST_IN_FLIGHT, required=False)
    state = OneOf(STATES, required=False)

    def validate_url(self, url: str) -> str:
        try:
            check_url(url, settings.WEBHOOKS_ALLOW_PRIVATE)
        except RefusedAddress as error:
            raise serializers.ValidationError(str(error), "url") from error
        return url


class EndpointCreateSerializer(EndpointChangeSerializer):
    """What a creation takes."""

    passed_over = EndpointChangeSerializer.passed_over | {"state"}

    url = Text(max_length=LONGEST_URL)
    events = KindsField(source="kinds")
    state = None  # type: ignore[assignment]  # a new one is active
    secret = SecretField(required=False, help_text="Made by the library where it is absent.")


class SecretCreateSerializer(Closed):
    secret = SecretField(required=False, help_text="Made by the library where it is absent.")


class ReplaySerializer(Closed):
    """Which events: of these kinds, from `after` on, and before `before`."""

    events = KindsField(source="kinds")
    after = ZonedInstant()
    before = ZonedInstant(required=False, allow_null=True, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["before"] and attrs["before"] <= attrs["after"]:
            raise serializers.ValidationError({"before": NO_SPAN})
        return attrs


class EndpointSerializer(serializers.ModelSerializer[Endpoint]):
    """An endpoint without its secret."""

    events = KindsField(source="kinds")
    signature_form = serializers.ChoiceField(Form.values, source="form")
    in_flight_limit = serializers.IntegerField(min_value=LEAST_IN_FLIGHT, max_value=MOST_IN_FLIGHT)
    state = serializers.ChoiceField(STATES)
    created_at = Instant()
    pending_secret = serializers.BooleanField(help_text="Whether one waits to be promoted.")

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
        )
        extra_kwargs = {name: {"required": True} for name in ("description", "reason")}


class NewEndpointSerializer(EndpointSerializer):
    """With its secret, this once."""

    secret = serializers.CharField()

    class Meta(EndpointSerializer.Meta):
        fields = (*EndpointSerializer.Meta.fields, "secret")


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One event for one endpoint."""

    event = serializers.UUIDField(source="event.uuid")
    kind = serializers.CharField(source="event.kind")
    state = serializers.ChoiceField(Delivery.State.values)
    attempts = serializers.IntegerField(source="attempted")
    created_at = Instant()
    next_at = Instant(allow_null=True)
    finished_at = Instant(allow_null=True)

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
class AnswerField(serializers.Field[bytes, Any, str, Any]):
    """A receiver may answer anything."""

    def to_representation(self, value: bytes) -> str:
        return bytes(value).decode(errors="replace")


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    """One request: what was answered, or why nothing was."""

    started_at = Instant()
    milliseconds = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    answer = AnswerField()

    class Meta:
        model = Attempt
        fields = ("started_at", "milliseconds", "status", "error", "answer")
        extra_kwargs = {"error": {"required": True}}


class WholeDeliverySerializer(DeliverySerializer):
    """With what was sent and what came of it; the body is as it was stored, and not of this serializer's making."""

    attempt_log = AttemptSerializer(source="attempts", many=True)

    class Meta(DeliverySerializer.Meta):
        fields = (*DeliverySerializer.Meta.fields, "attempt_log")
