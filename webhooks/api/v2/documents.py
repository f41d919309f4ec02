"""Describes webhooks, their deliveries and the stream of events in the OpenAPI document of version 2."""

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers

from library_site.api.documents.errors import document_error, document_invalid
from library_site.api.documents.schema import (
    URL_FIELD,
    build_page_serializer,
    document_answer,
    document_limit,
    request_example,
    response_header,
)
from webhooks import endpoints
from webhooks.api.openapi import EVENT_ID, TIME_EXAMPLE, event_example, stream_schema
from webhooks.api.v2.serializers import (
    FILTER_CHOICES,
    KEY_ENCODING_HELP,
    KEY_ENCODINGS,
    DeliverySerializer,
    KindsField,
    NewWebhookSerializer,
    SecretField,
    SentDeliverySerializer,
    WebhookSerializer,
)
from webhooks.models import EVENT_RETENTION
from webhooks.registry import EVENT_KINDS, PING_KIND
from webhooks.ssrf import NOT_PUBLIC_MESSAGE
from webhooks.stream import CursorGone

KIND_EXAMPLE, *_ = EVENT_KINDS.values()
SECRET_EXAMPLE = "whsec_R8dN2vYq0bTzL6mXk4sWcJ7hPfE1gAuQ9iZoVxB3n5MtD+/w"  # noqa: S105  # an example
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
    "key_encoding": "utf-8",
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


WebhookPageSerializer = build_page_serializer(WebhookSerializer, "All webhooks; there is never more than one page.")
DeliveryPageSerializer = build_page_serializer(DeliverySerializer, "The deliveries of a webhook.", **URL_FIELD)


class WebhookSecretSerializer(serializers.Serializer[None]):
    secret = serializers.CharField()
    key_encoding = serializers.ChoiceField(KEY_ENCODINGS, help_text=KEY_ENCODING_HELP)


class ReplayCountSerializer(serializers.Serializer[None]):
    deliveries = serializers.IntegerField(help_text="The number of deliveries that will be sent.")


EVENTS_PAGE = {
    "title": "EventPage",
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


def build_id_parameter(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": 0}, OpenApiParameter.PATH, description=description)


WEBHOOK_ID, DELIVERY_ID = (
    build_id_parameter("webhook_id", "The webhook's id."),
    build_id_parameter("delivery_id", "The delivery's id."),
)
CANNOT_SEND = document_error(
    endpoints.EndpointDisabled, "The webhook is disabled, or too many of your deliveries are waiting."
)
INVALID_URL = document_invalid("url", NOT_PUBLIC_MESSAGE)
ACCEPTED = document_answer(DeliverySerializer, "It will be sent.", WAITING_DELIVERY_EXAMPLE)
LOCATION = response_header("Location", "The address of the delivery.", 202)

document_endpoints = extend_schema_view(
    list=extend_schema(
        summary="List your webhooks",
        description="Those that your app and its keys made. With an API key of your own, all of yours.",
        responses={
            200: document_answer(
                WebhookPageSerializer, "The webhooks.", {"results": [ENDPOINT_EXAMPLE], "next": None, "previous": None}
            ),
        },
    ),
    create=extend_schema(
        summary="Make a webhook",
        description="Events from now on are sent to the URL, signed with the secret. The webhook is disabled when the"
        " app's access or the API key that makes it ends. `X-Webhook-Signature` is `sha256=` and the HMAC-SHA256 of the"
        " body in hexadecimal (form A), or `t=`, the time in Unix seconds, `,s=` and that of the time, a full stop and"
        " the body (form B). Receivers of form C verify it with a library of Standard Webhooks or Svix.",
        examples=[request_example("A webhook", NEW_ENDPOINT_EXAMPLE)],
        responses={
            201: document_answer(
                NewWebhookSerializer, "Its secret is shown this once.", {**ENDPOINT_EXAMPLE, "secret": SECRET_EXAMPLE}
            ),
            **document_error(
                endpoints.TooManyEndpoints, "You have the largest number of webhooks that a user may have."
            ),
            **INVALID_URL,
        },
    ),
    retrieve=extend_schema(
        description="Everything except its secret.",
    ),
    partial_update=extend_schema(
        description="Only the members present in the body change. A webhook that is set active loses its reason. It can"
        " get form C if its secrets are those of form C; the library makes such secrets.",
        examples=[request_example("Active again", {"state": "active"})],
        responses={
            **document_error(endpoints.NewSecretNeeded, "Form C cannot sign with the secret."),
            **INVALID_URL,
        },
    ),
    destroy=extend_schema(
        description="Nothing more is sent to it, waiting deliveries included.",
    ),
)

document_add_secret = extend_schema(
    operation_id="add_webhook_secret",
    summary="Begin to change the secret",
    description="The new secret is pending. In forms A and B it signs nothing until it is promoted: let the receiver"
    " accept both first. In form C both sign until then: the receiver may change its own at any time before. An older"
    " pending secret is deleted.",
    extensions={"x-body-optional": True},
    examples=[request_example("Made by the library", {})],
    responses={
        201: document_answer(
            WebhookSecretSerializer,
            "The secret, shown this once.",
            {"secret": SECRET_EXAMPLE, "key_encoding": "utf-8"},
        ),
        **document_invalid("secret", str(SecretField.default_error_messages["invalid"])),
    },
)

document_promote = extend_schema(
    operation_id="promote_webhook_secret",
    summary="Finish changing the secret",
    description="From now on the pending secret signs, and the old one is deleted.",
    responses={
        200: document_answer(WebhookSerializer, "The webhook.", ENDPOINT_EXAMPLE),
        **document_error(endpoints.NoPendingSecret, "No secret is pending."),
    },
)

document_ping = extend_schema(
    operation_id="ping_webhook",
    summary="Try a webhook",
    description=f"Sends `{PING_KIND}` to it, in the same way as other events.",
    parameters=[LOCATION],
    responses={202: ACCEPTED, **CANNOT_SEND},
)

document_replay = extend_schema(
    operation_id="replay_events",
    summary="Send past events again",
    description=f"The events from `after` on and before `before`, at most {EVENT_RETENTION.days} days. `*` is for all"
    " kinds that the webhook takes.",
    examples=[request_example("All since", {"events": ["*"], "after": "2026-01-31T00:00:00Z"})],
    responses={
        202: document_answer(ReplayCountSerializer, "They will be sent.", {"deliveries": 12}),
        **CANNOT_SEND,
        **document_invalid("events", str(KindsField.default_error_messages["kinds"])),
    },
)

document_deliveries = extend_schema_view(
    list=extend_schema(
        summary="List the deliveries of a webhook",
        description="The newest first; follow `next` to read on.",
        parameters=[
            *(
                OpenApiParameter(name, {"type": "string", "enum": values}, description=f"Its {name}.")
                for name, values in FILTER_CHOICES.items()
            ),
        ],
        responses={
            200: document_answer(
                DeliveryPageSerializer,
                "The deliveries.",
                {"results": [DELIVERY_EXAMPLE], "next": None, "previous": None},
            ),
            **document_error(endpoints.EndpointNotFound),
        },
    ),
    retrieve=extend_schema(
        description="With each attempt, and the body that was sent.",
        responses={
            200: document_answer(
                SentDeliverySerializer,
                "The delivery.",
                {**DELIVERY_EXAMPLE, "attempt_log": [ATTEMPT_EXAMPLE], "body": event_example(KIND_EXAMPLE)},
            ),
        },
    ),
)

document_redeliver = extend_schema(
    operation_id="redeliver",
    summary="Send a delivery again",
    description="This makes a new delivery of the same event.",
    parameters=[LOCATION],
    responses={202: ACCEPTED, **CANNOT_SEND},
)

document_stream = extend_schema(
    operation_id="list_events",
    summary="Read the stream of events",
    description="The oldest events first. Follow `next` while there is one, then ask again with `cursor` as `after`:"
    f" no event is skipped or repeated. A cursor is valid for {EVENT_RETENTION.days} days.",
    parameters=[
        OpenApiParameter("after", {"type": "string"}, description="The `cursor` of an earlier answer."),
        OpenApiParameter(
            "kinds",
            {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(EVENT_KINDS)}},
            description="The kinds to list, repeated or with commas between them; all if it is absent.",
        ),
        document_limit("The number of items on a page."),
    ],
    responses={
        200: document_answer(EVENTS_PAGE, "The events, each as it was sent to webhooks.", EVENTS_EXAMPLE),
        **document_error(CursorGone, "The cursor is too old, or its events were lost."),
        **document_invalid("after", "It is no cursor of this stream.", "query"),
    },
)
