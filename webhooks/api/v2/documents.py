"""Describes webhooks, their deliveries and the stream of events in the OpenAPI document of version 2."""

from inspect import getsource
from typing import Any

from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_serializer,
    extend_schema_view,
)
from rest_framework import serializers

from library_site.api.query import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE
from library_site.api.schema import (
    BODY_ERRORS,
    COMMON_ERRORS,
    error_schema,
    invalid_schema,
    response_header,
    unknown_parameter_schema,
)
from webhooks import endpoints, signing
from webhooks.api.openapi import EVENT_ID, TIME_EXAMPLE, event_example, stream_schema
from webhooks.api.v2.serializers import (
    FILTER_CHOICES,
    DeliverySerializer,
    EndpointChangeSerializer,
    EndpointCreateSerializer,
    EndpointSerializer,
    KindsField,
    NewEndpointSerializer,
    ReplaySerializer,
    SecretCreateSerializer,
    SecretField,
    WholeDeliverySerializer,
)
from webhooks.models import EVENT_RETENTION
from webhooks.registry import EVENT_KINDS, PING_KIND
from webhooks.ssrf import NOT_PUBLIC_MESSAGE

TAGS = ["Webhooks"]
KIND_EXAMPLE, *_ = EVENT_KINDS.values()
SECRET_EXAMPLE = "whsec_R8dN2vYq0bTzL6mXk4sWcJ7hPfE1gAuQ9iZoVxB3n5M"  # noqa: S105  # an example
ENDPOINT_EXAMPLE = {
    "id": 1,
    "url": "https://receiver.example/library",
    "events": list(EVENT_KINDS)[:2],
    "signature_form": "B",
    "description": "The shop's catalogue",
    "in_flight_limit": 50,
    "state": "active",
    "reason": "",
    "created_at": TIME_EXAMPLE,
    "pending_secret": False,
}
NEW_ENDPOINT_EXAMPLE = {name: ENDPOINT_EXAMPLE[name] for name in ("url", "events", "signature_form", "description")}
DELIVERY_EXAMPLE = {
    "id": 7,
    "event": EVENT_ID,
    "kind": KIND_EXAMPLE.name,
    "state": "delivered",
    "attempts": 1,
    "created_at": TIME_EXAMPLE,
    "next_at": None,
    "finished_at": "2026-01-31T09:30:00.250000Z",
}
WAITING_DELIVERY_EXAMPLE = {
    **DELIVERY_EXAMPLE,
    "state": "waiting",
    "attempts": 0,
    "next_at": TIME_EXAMPLE,
    "finished_at": None,
}
ATTEMPT_EXAMPLE = {"started_at": TIME_EXAMPLE, "milliseconds": 48, "status": 200, "error": "", "answer": "ok"}
CURSOR_EXAMPLE = "WzEyMzQsNywiMjAyNi0wMS0zMVQwOTozMDowMC4wMDAwMDBaIl0"
EVENTS_EXAMPLE = {"results": [event_example(KIND_EXAMPLE)], "next": None, "cursor": CURSOR_EXAMPLE}


@extend_schema_serializer(many=False)
class EndpointsSerializer(serializers.Serializer[None]):
    """All webhooks; there is never more than one page."""

    results = EndpointSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


@extend_schema_serializer(many=False)
class DeliveriesSerializer(serializers.Serializer[None]):
    """The list is read in one direction: `previous` is always null."""

    results = DeliverySerializer(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class SecretSerializer(serializers.Serializer[None]):
    secret = serializers.CharField()


class CountSerializer(serializers.Serializer[None]):
    deliveries = serializers.IntegerField(help_text="The number of deliveries that will be sent.")


class SentDeliverySerializer(WholeDeliverySerializer):
    """With its body and its attempts."""

    body = serializers.JSONField()

    class Meta(WholeDeliverySerializer.Meta):
        fields = (*WholeDeliverySerializer.Meta.fields, "body")


EVENTS_PAGE = {
    "type": "object",
    "properties": {
        "results": {"type": "array", "items": stream_schema()},
        "next": {
            "type": ["string", "null"],
            "format": "uri",
            "description": "The next page; null if there is none yet.",
        },
        "cursor": {"type": "string", "description": "The place to continue from later, as `after`."},
    },
    "required": ["results", "next", "cursor"],
}


def id_parameter(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": 0}, OpenApiParameter.PATH, description=description)


def query_parameter(name: str, schema: dict[str, Any], description: str) -> OpenApiParameter:
    return OpenApiParameter(name, schema, description=description)


def example_schema(
    serializer: type[serializers.BaseSerializer[Any]], description: str, example: Any
) -> OpenApiResponse:
    return OpenApiResponse(serializer, description, [OpenApiExample("Answer", example)])


LIMIT_SCHEMA = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_PAGE_SIZE,
    "default": DEFAULT_PAGE_SIZE,
}
LIMIT = query_parameter("limit", LIMIT_SCHEMA, "The number of items on a page.")
WEBHOOK_ID, DELIVERY_ID = (
    id_parameter("webhook_id", "The webhook's id."),
    id_parameter("delivery_id", "The delivery's id."),
)
FORBIDDEN = error_schema(
    "The credential lacks the scope, or a page of another origin writes.",
    "FORBIDDEN",
    "The credential lacks the scope webhooks",
)
WEBHOOK_ERRORS: dict[int, Any] = {**COMMON_ERRORS, 403: FORBIDDEN}
UNKNOWN_PARAMETER = unknown_parameter_schema("limit", "It is not known here; the nearest name is version.")
ENDPOINT_NOT_FOUND = error_schema("You have no such webhook.", "NOT_FOUND", "Webhook not found")
DELIVERY_NOT_FOUND = error_schema("The webhook has no such delivery.", "NOT_FOUND", "Delivery not found")
CANNOT_SEND = error_schema(
    "The webhook is disabled, or too many of your deliveries are waiting.",
    "CONFLICT",
    "The webhook is disabled: set its state to active first",
)
INVALID_URL = invalid_schema("url", NOT_PUBLIC_MESSAGE)
INVALID_SECRET = invalid_schema("secret", str(SecretField.default_error_messages["invalid"]))
INVALID_KINDS = invalid_schema("events", str(KindsField.default_error_messages["kinds"]))
ACCEPTED = example_schema(DeliverySerializer, "It will be sent.", WAITING_DELIVERY_EXAMPLE)
LOCATION = response_header("Location", "The address of the delivery.", 202)
ENDPOINT_ERRORS: dict[int, Any] = {400: UNKNOWN_PARAMETER, 404: ENDPOINT_NOT_FOUND, **WEBHOOK_ERRORS}
WEBHOOK_BODY_ERRORS: dict[int, Any] = {**BODY_ERRORS, **WEBHOOK_ERRORS}

document_endpoints = extend_schema_view(
    list=extend_schema(
        operation_id="list_webhooks",
        summary="List your webhooks",
        description="Those that your app and its keys made. With an API key of your own, all of yours.",
        tags=TAGS,
        responses={
            200: example_schema(
                EndpointsSerializer, "The webhooks.", {"results": [ENDPOINT_EXAMPLE], "next": None, "previous": None}
            ),
            400: UNKNOWN_PARAMETER,
            **WEBHOOK_ERRORS,
        },
    ),
    create=extend_schema(
        operation_id="create_webhook",
        summary="Make a webhook",
        description="Events from now on are sent to the URL, signed with the secret. The webhook is disabled when the"
        " app's access or the API key that makes it ends. Receivers in Python may verify"
        f" them with a copy of this module:\n\n```python\n{getsource(signing)}```",
        tags=TAGS,
        request=EndpointCreateSerializer,
        examples=[OpenApiExample("A webhook", NEW_ENDPOINT_EXAMPLE, request_only=True)],
        parameters=[response_header("Location", "The address of the new webhook.", 201)],
        responses={
            201: example_schema(
                NewEndpointSerializer, "Its secret is shown this once.", {**ENDPOINT_EXAMPLE, "secret": SECRET_EXAMPLE}
            ),
            409: error_schema(
                "You have the largest number of webhooks that a user may have.",
                "CONFLICT",
                f"You have {endpoints.MAX_ENDPOINTS_PER_USER} webhooks: delete one first",
            ),
            **WEBHOOK_BODY_ERRORS,
            422: INVALID_URL,
        },
    ),
    retrieve=extend_schema(
        operation_id="read_webhook",
        summary="Read a webhook",
        description="Everything except its secret.",
        tags=TAGS,
        parameters=[WEBHOOK_ID],
        responses={200: example_schema(EndpointSerializer, "The webhook.", ENDPOINT_EXAMPLE), **ENDPOINT_ERRORS},
    ),
    partial_update=extend_schema(
        operation_id="change_webhook",
        summary="Change a webhook",
        description="Only the members present in the body change. A webhook that is set active loses its reason.",
        tags=TAGS,
        request=EndpointChangeSerializer,
        examples=[OpenApiExample("Active again", {"state": "active"}, request_only=True)],
        parameters=[WEBHOOK_ID],
        responses={
            200: example_schema(EndpointSerializer, "The webhook after the change.", ENDPOINT_EXAMPLE),
            404: ENDPOINT_NOT_FOUND,
            **WEBHOOK_BODY_ERRORS,
            422: INVALID_URL,
        },
    ),
    destroy=extend_schema(
        operation_id="delete_webhook",
        summary="Delete a webhook",
        description="Nothing more is sent to it, waiting deliveries included.",
        tags=TAGS,
        parameters=[WEBHOOK_ID],
        responses={204: OpenApiResponse(description="The webhook is gone."), **ENDPOINT_ERRORS},
    ),
)

document_add_secret = extend_schema(
    operation_id="add_webhook_secret",
    summary="Begin to change the secret",
    description="The new secret is pending: it signs nothing until it is promoted. Let the receiver accept both"
    " first. An older pending secret is deleted.",
    tags=TAGS,
    request=SecretCreateSerializer,
    extensions={"x-body-optional": True},
    examples=[OpenApiExample("Made by the library", {}, request_only=True)],
    parameters=[WEBHOOK_ID],
    responses={
        201: example_schema(SecretSerializer, "The secret, shown this once.", {"secret": SECRET_EXAMPLE}),
        404: ENDPOINT_NOT_FOUND,
        **WEBHOOK_BODY_ERRORS,
        422: INVALID_SECRET,
    },
)

document_promote = extend_schema(
    operation_id="promote_webhook_secret",
    summary="Finish changing the secret",
    description="From now on the pending secret signs, and the old one is deleted.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID],
    responses={
        200: example_schema(EndpointSerializer, "The webhook.", ENDPOINT_EXAMPLE),
        409: error_schema("No secret is pending.", "CONFLICT", "There is no pending secret: add one first"),
        **ENDPOINT_ERRORS,
    },
)

document_ping = extend_schema(
    operation_id="ping_webhook",
    summary="Try a webhook",
    description=f"Sends `{PING_KIND}` to it, in the same way as other events.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID, LOCATION],
    responses={202: ACCEPTED, 409: CANNOT_SEND, **ENDPOINT_ERRORS},
)

document_replay = extend_schema(
    operation_id="replay_events",
    summary="Send past events again",
    description=f"The events from `after` on and before `before`, at most {EVENT_RETENTION.days} days. `*` is for all"
    " kinds that the webhook takes.",
    tags=TAGS,
    request=ReplaySerializer,
    examples=[OpenApiExample("All since", {"events": ["*"], "after": "2026-01-31T00:00:00Z"}, request_only=True)],
    parameters=[WEBHOOK_ID],
    responses={
        202: example_schema(CountSerializer, "They will be sent.", {"deliveries": 12}),
        404: ENDPOINT_NOT_FOUND,
        409: CANNOT_SEND,
        **WEBHOOK_BODY_ERRORS,
        422: INVALID_KINDS,
    },
)

document_deliveries = extend_schema_view(
    list=extend_schema(
        operation_id="list_deliveries",
        summary="List the deliveries of a webhook",
        description="The newest first; follow `next` to read on.",
        tags=TAGS,
        parameters=[
            WEBHOOK_ID,
            *(
                query_parameter(name, {"type": "string", "enum": values}, f"Its {name}.")
                for name, values in FILTER_CHOICES.items()
            ),
            query_parameter(
                "cursor", {"type": "string", "pattern": "^[0-9]+$"}, "Where the page begins, as `next` has it."
            ),
            LIMIT,
        ],
        responses={
            200: example_schema(
                DeliveriesSerializer, "The deliveries.", {"results": [DELIVERY_EXAMPLE], "next": None, "previous": None}
            ),
            **ENDPOINT_ERRORS,
            400: unknown_parameter_schema("status", "It is not known here; the nearest name is state."),
            422: invalid_schema("limit", f"Input should be less than or equal to {MAX_PAGE_SIZE}."),
        },
    ),
    retrieve=extend_schema(
        operation_id="read_delivery",
        summary="Read a delivery",
        description="With each attempt, and the body that was sent.",
        tags=TAGS,
        parameters=[WEBHOOK_ID, DELIVERY_ID],
        responses={
            200: example_schema(
                SentDeliverySerializer,
                "The delivery.",
                {**DELIVERY_EXAMPLE, "attempt_log": [ATTEMPT_EXAMPLE], "body": event_example(KIND_EXAMPLE)},
            ),
            **ENDPOINT_ERRORS,
            404: DELIVERY_NOT_FOUND,
        },
    ),
)

document_redeliver = extend_schema(
    operation_id="redeliver",
    summary="Send a delivery again",
    description="This makes a new delivery of the same event.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID, DELIVERY_ID, LOCATION],
    responses={202: ACCEPTED, 409: CANNOT_SEND, **ENDPOINT_ERRORS, 404: DELIVERY_NOT_FOUND},
)

document_stream = extend_schema(
    operation_id="list_events",
    summary="Read the stream of events",
    description="The oldest events first. Follow `next` while there is one, then ask again with `cursor` as `after`:"
    f" no event is skipped or repeated. A cursor is valid for {EVENT_RETENTION.days} days.",
    tags=TAGS,
    parameters=[
        query_parameter("after", {"type": "string"}, "The `cursor` of an earlier answer."),
        OpenApiParameter(
            "kinds",
            {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(EVENT_KINDS)}},
            description="The kinds to list, repeated or with commas between them; all if it is absent.",
        ),
        LIMIT,
    ],
    responses={
        200: OpenApiResponse(
            EVENTS_PAGE,
            "The events, each as it was sent to webhooks.",
            [
                OpenApiExample(
                    "Events", {"results": [event_example(KIND_EXAMPLE)], "next": None, "cursor": CURSOR_EXAMPLE}
                )
            ],
        ),
        **WEBHOOK_ERRORS,
        400: unknown_parameter_schema("cursor", "It is not known here; the nearest name is version."),
        410: error_schema(
            "The cursor is too old.",
            "GONE",
            "The cursor is older than the events that are kept: begin anew without it",
        ),
        422: invalid_schema("after", "It is no cursor of this stream."),
    },
)
