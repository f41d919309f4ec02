"""What the OpenAPI document says of webhooks, their deliveries and the stream of events."""

from inspect import getsource
from typing import Any

from django.conf import settings
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_serializer,
    extend_schema_view,
)
from rest_framework import serializers

from books.api.pagination import KeysetPagination
from books.api.v2.schema import AT_ANY_TIME, BODY_REFUSED, BOOK, error, invalid, unknown
from library_site.api.schema import response_header
from webhooks import endpoints, signing
from webhooks.api.v2.serializers import (
    CHOICES,
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
from webhooks.models import KEPT_FOR
from webhooks.registry import CREATED, DELETED, KINDS, PING, UPDATED
from webhooks.ssrf import NOT_PUBLIC

TAGS = ["Webhooks"]
MOMENT = "2026-01-31T09:30:00.000000Z"
SECRET = "whsec_R8dN2vYq0bTzL6mXk4sWcJ7hPfE1gAuQ9iZoVxB3n5M"  # noqa: S105  # an example
HOOK = {
    "id": 1,
    "url": "https://receiver.example/library",
    "events": [CREATED, UPDATED],
    "signature_form": "B",
    "description": "The shop's catalogue",
    "in_flight_limit": 50,
    "state": "active",
    "reason": "",
    "created_at": MOMENT,
    "pending_secret": False,
}
NEW_HOOK = {name: HOOK[name] for name in ("url", "events", "signature_form", "description")}
EVENT_ID = "3f6b0d0e-5d0c-4d3b-9a65-0f6d1c1f6a52"
DELIVERY = {
    "id": 7,
    "event": EVENT_ID,
    "kind": CREATED,
    "state": "delivered",
    "attempts": 1,
    "created_at": MOMENT,
    "next_at": None,
    "finished_at": "2026-01-31T09:30:00.250000Z",
}
WAITING = {**DELIVERY, "state": "waiting", "attempts": 0, "next_at": MOMENT, "finished_at": None}
ATTEMPT = {"started_at": MOMENT, "milliseconds": 48, "status": 200, "error": "", "answer": "ok"}
CURSOR = "WzEyMzQsNywiMjAyNi0wMS0zMVQwOTozMDowMC4wMDAwMDBaIl0"

BOOK_SCHEMA = {"$ref": "#/components/schemas/Book"}
CHANGED = {
    "type": "object",
    "properties": {
        "book": BOOK_SCHEMA,
        "previous": {"type": "object", "description": "What the members that changed were before."},
    },
    "required": ["book", "previous"],
}
TRIED = {"type": "object", "properties": {"endpoint": {"type": "integer"}}, "required": ["endpoint"]}
PREVIOUS: dict[str, dict[str, Any]] = {CREATED: {}, UPDATED: {"available": True}, DELETED: {}}
SENT: dict[str, dict[str, Any]] = {
    CREATED: BOOK,
    UPDATED: {**BOOK, "available": False, "version": 2},
    DELETED: BOOK,
}
SENTENCES = {**KINDS, PING: "Sent by hand, to try a webhook."}


def event_schema(kinds: list[str], data: dict[str, Any]) -> dict[str, Any]:
    """The body of an event of one of these kinds."""
    properties = {
        "id": {"type": "string", "format": "uuid", "description": "The same at each attempt: deduplicate by it."},
        "event": {"type": "string", "enum": kinds},
        "timestamp": {"type": "string", "format": "date-time"},
        "api_version": {"type": "integer", "enum": [settings.EVENT_API_VERSION]},
        "data": data,
    }
    return {"type": "object", "properties": properties, "required": list(properties)}


def event_example(kind: str) -> dict[str, Any]:
    data = {"endpoint": 1} if kind == PING else {"book": SENT[kind], "previous": PREVIOUS[kind]}
    return {"id": EVENT_ID, "event": kind, "timestamp": MOMENT, "api_version": settings.EVENT_API_VERSION, "data": data}


def events_documented(result: dict[str, Any], generator: Any, **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: what is sent, in the document of the version that its bodies speak."""
    if generator.api_version == f"v{settings.EVENT_API_VERSION}":
        result["webhooks"] = {kind: {"post": sent(kind)} for kind in SENTENCES}
    return result


def sent(kind: str) -> dict[str, Any]:
    schema = event_schema([kind], TRIED if kind == PING else CHANGED)
    content = {"schema": schema, "examples": {"Event": {"value": event_example(kind)}}}
    return {
        "operationId": f"receive_{kind.replace('.', '_')}",
        "summary": SENTENCES[kind],
        "description": "At least once, and in any order. Redirects are not followed.",
        "parameters": [sent_header(*one) for one in headers(kind)],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "2XX": {"description": "It was received."},
            "default": {"description": "It is sent again, five times in all, and later each time."},
        },
    }


def headers(kind: str) -> list[tuple[str, dict[str, Any], str]]:
    signature = (
        "HMAC-SHA256 with the secret, in hexadecimal: `t=<timestamp>,s=<hex>` over `<timestamp>.<body>` (form B), or"
        " `sha256=<hex>` over the body alone (form A), which anyone who overheard it may send again."
    )
    return [
        (signing.EVENT, {"type": "string", "enum": [kind]}, "The kind of the event."),
        (signing.TIMESTAMP, {"type": "string", "pattern": "^[0-9]+$"}, "When it was sent, in Unix seconds."),
        (signing.SIGNATURE, {"type": "string", "pattern": "^(sha256=|t=[0-9]+,s=)[0-9a-f]{64}$"}, signature),
    ]


def sent_header(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": True, "schema": schema, "description": description}


@extend_schema_serializer(many=False)
class EndpointsSerializer(serializers.Serializer[None]):
    """All of them; there are never more than one page."""

    results = EndpointSerializer(many=True)
    next = serializers.CharField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


@extend_schema_serializer(many=False)
class DeliveriesSerializer(serializers.Serializer[None]):
    """The list is read onwards only: `previous` is always null."""

    results = DeliverySerializer(many=True)
    next = serializers.URLField(allow_null=True)
    previous = serializers.CharField(allow_null=True)


class SecretSerializer(serializers.Serializer[None]):
    secret = serializers.CharField()


class CountSerializer(serializers.Serializer[None]):
    deliveries = serializers.IntegerField(help_text="How many are to be sent.")


class SentDeliverySerializer(WholeDeliverySerializer):
    """With what was sent and what came of it."""

    body = serializers.JSONField()

    class Meta(WholeDeliverySerializer.Meta):
        fields = (*WholeDeliverySerializer.Meta.fields, "body")


EVENTS_PAGE = {
    "type": "object",
    "properties": {
        "results": {"type": "array", "items": event_schema(list(KINDS), CHANGED)},
        "next": {
            "type": ["string", "null"],
            "format": "uri",
            "description": "The next page, null where there is none yet.",
        },
        "cursor": {"type": "string", "description": "Where to go on from later, as `after`."},
    },
    "required": ["results", "next", "cursor"],
}


def path_id(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": 0}, OpenApiParameter.PATH, description=description)


def query(name: str, schema: dict[str, Any], description: str) -> OpenApiParameter:
    return OpenApiParameter(name, schema, description=description)


def shown(serializer: type[serializers.BaseSerializer[Any]], words: str, example: Any) -> OpenApiResponse:
    return OpenApiResponse(serializer, words, [OpenApiExample("Answer", example)])


LIMITS = {
    "type": "integer",
    "minimum": 1,
    "maximum": KeysetPagination.max_limit,
    "default": KeysetPagination.default_limit,
}
LIMIT = query("limit", LIMITS, "How many a page.")
WEBHOOK_ID, DELIVERY_ID = path_id("webhook_id", "The webhook's id."), path_id("delivery_id", "The delivery's id.")
FORBIDDEN = error("The credential lacks the scope.", "FORBIDDEN", "The credential lacks the scope webhooks")
ANYWAY: dict[int, Any] = {**AT_ANY_TIME, 403: FORBIDDEN}
UNKNOWN = unknown("limit", "It is not known here; the nearest name is version.")
NO_WEBHOOK = error("You have no such webhook.", "NOT_FOUND", "Webhook not found")
NO_DELIVERY = error("The webhook has no such delivery.", "NOT_FOUND", "Delivery not found")
DISABLED = error("The webhook is disabled.", "CONFLICT", "The webhook is disabled: set its state to active first")
BAD_URL = invalid("url", NOT_PUBLIC)
BAD_SECRET = invalid("secret", str(SecretField.default_error_messages["invalid"]))
BAD_KINDS = invalid("events", str(KindsField.default_error_messages["kinds"]))
ACCEPTED = shown(DeliverySerializer, "It is to be sent.", WAITING)
LOCATION = response_header("Location", "The address of the delivery.", 202)
OF_ONE: dict[int, Any] = {400: UNKNOWN, 404: NO_WEBHOOK, **ANYWAY}
WITH_BODY: dict[int, Any] = {**BODY_REFUSED, **ANYWAY}

webhooks_document = extend_schema_view(
    list=extend_schema(
        operation_id="list_webhooks",
        summary="List your webhooks",
        description="All of them.",
        tags=TAGS,
        responses={
            200: shown(EndpointsSerializer, "The webhooks.", {"results": [HOOK], "next": None, "previous": None}),
            400: UNKNOWN,
            **ANYWAY,
        },
    ),
    create=extend_schema(
        operation_id="create_webhook",
        summary="Make a webhook",
        description="What happens from now on is sent to the URL, signed with the secret. Receivers in Python may"
        f" verify what comes by a copy of this module:\n\n```python\n{getsource(signing)}```",
        tags=TAGS,
        request=EndpointCreateSerializer,
        examples=[OpenApiExample("A webhook", NEW_HOOK, request_only=True)],
        parameters=[response_header("Location", "The address of the new webhook.", 201)],
        responses={
            201: shown(NewEndpointSerializer, "Its secret is shown this once.", {**HOOK, "secret": SECRET}),
            409: error(
                "You have as many as one may have.",
                "CONFLICT",
                f"You have {endpoints.MOST} webhooks: delete one first",
            ),
            **WITH_BODY,
            422: BAD_URL,
        },
    ),
    retrieve=extend_schema(
        operation_id="read_webhook",
        summary="Read a webhook",
        description="All but its secret.",
        tags=TAGS,
        parameters=[WEBHOOK_ID],
        responses={200: shown(EndpointSerializer, "The webhook.", HOOK), **OF_ONE},
    ),
    partial_update=extend_schema(
        operation_id="change_webhook",
        summary="Change a webhook",
        description="Only the members present change. One that is set active again begins without a reason.",
        tags=TAGS,
        request=EndpointChangeSerializer,
        examples=[OpenApiExample("Active again", {"state": "active"}, request_only=True)],
        parameters=[WEBHOOK_ID],
        responses={
            200: shown(EndpointSerializer, "The webhook after the change.", HOOK),
            404: NO_WEBHOOK,
            **WITH_BODY,
            422: BAD_URL,
        },
    ),
    destroy=extend_schema(
        operation_id="delete_webhook",
        summary="Delete a webhook",
        description="It is sent nothing any more, not even what is waiting.",
        tags=TAGS,
        parameters=[WEBHOOK_ID],
        responses={204: OpenApiResponse(description="The webhook is gone."), **OF_ONE},
    ),
)

secret_document = extend_schema(
    operation_id="add_webhook_secret",
    summary="Begin to change the secret",
    description="The new secret is pending, and signs nothing until it is promoted: let the receiver accept both"
    " first. Another that is pending is forgotten.",
    tags=TAGS,
    request=SecretCreateSerializer,
    extensions={"x-body-optional": True},
    examples=[OpenApiExample("Made by the library", {}, request_only=True)],
    parameters=[WEBHOOK_ID],
    responses={
        201: shown(SecretSerializer, "The secret, shown this once.", {"secret": SECRET}),
        404: NO_WEBHOOK,
        **WITH_BODY,
        422: BAD_SECRET,
    },
)

promote_document = extend_schema(
    operation_id="promote_webhook_secret",
    summary="Finish changing the secret",
    description="The pending secret signs from now on, and the one before is gone.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID],
    responses={
        200: shown(EndpointSerializer, "The webhook.", HOOK),
        409: error("No secret is pending.", "CONFLICT", "There is no pending secret: add one first"),
        **OF_ONE,
    },
)

ping_document = extend_schema(
    operation_id="ping_webhook",
    summary="Try a webhook",
    description=f"Sends it `{PING}`, as any event is sent.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID, LOCATION],
    responses={202: ACCEPTED, 409: DISABLED, **OF_ONE},
)

replay_document = extend_schema(
    operation_id="replay_events",
    summary="Send past events again",
    description=f"Those from `after` on and before `before`, as far back as {KEPT_FOR.days} days. `*` is for all kinds"
    " that the webhook takes.",
    tags=TAGS,
    request=ReplaySerializer,
    examples=[OpenApiExample("All since", {"events": ["*"], "after": "2026-01-31T00:00:00Z"}, request_only=True)],
    parameters=[WEBHOOK_ID],
    responses={
        202: shown(CountSerializer, "They are to be sent.", {"deliveries": 12}),
        404: NO_WEBHOOK,
        409: DISABLED,
        **WITH_BODY,
        422: BAD_KINDS,
    },
)

deliveries_document = extend_schema_view(
    list=extend_schema(
        operation_id="list_deliveries",
        summary="List the deliveries of a webhook",
        description="The newest first; follow `next` to read on.",
        tags=TAGS,
        parameters=[
            WEBHOOK_ID,
            *(query(name, {"type": "string", "enum": values}, f"Its {name}.") for name, values in CHOICES.items()),
            query("cursor", {"type": "string", "pattern": "^[0-9]+$"}, "Where the page begins, as `next` has it."),
            LIMIT,
        ],
        responses={
            200: shown(
                DeliveriesSerializer, "The deliveries.", {"results": [DELIVERY], "next": None, "previous": None}
            ),
            **OF_ONE,
            400: unknown("status", "It is not known here; the nearest name is state."),
            422: invalid("limit", f"Input should be less than or equal to {KeysetPagination.max_limit}."),
        },
    ),
    retrieve=extend_schema(
        operation_id="read_delivery",
        summary="Read a delivery",
        description="With each attempt, and what was sent.",
        tags=TAGS,
        parameters=[WEBHOOK_ID, DELIVERY_ID],
        responses={
            200: shown(
                SentDeliverySerializer,
                "The delivery.",
                {**DELIVERY, "attempt_log": [ATTEMPT], "body": event_example(CREATED)},
            ),
            **OF_ONE,
            404: NO_DELIVERY,
        },
    ),
)

redeliver_document = extend_schema(
    operation_id="redeliver",
    summary="Send a delivery again",
    description="As a new delivery of the same event.",
    tags=TAGS,
    request=None,
    parameters=[WEBHOOK_ID, DELIVERY_ID, LOCATION],
    responses={202: ACCEPTED, 409: DISABLED, **OF_ONE, 404: NO_DELIVERY},
)

events_document = extend_schema(
    operation_id="list_events",
    summary="Follow what happens",
    description="The oldest that are kept first. Follow `next` while there is one, then ask again with `cursor` as"
    f" `after`: no event is passed over, nor told twice. A cursor is good for {KEPT_FOR.days} days.",
    tags=TAGS,
    parameters=[
        query("after", {"type": "string"}, "A `cursor` from before."),
        OpenApiParameter(
            "kinds",
            {"type": "array", "minItems": 1, "items": {"type": "string", "enum": list(KINDS)}},
            explode=False,
            description="Which kinds; without it, all.",
        ),
        LIMIT,
    ],
    responses={
        200: OpenApiResponse(
            EVENTS_PAGE,
            "The events, each as it was sent to webhooks.",
            [OpenApiExample("Events", {"results": [event_example(CREATED)], "next": None, "cursor": CURSOR})],
        ),
        **ANYWAY,
        400: unknown("cursor", "It is not known here; the nearest name is version."),
        410: error(
            "The cursor is too old.",
            "GONE",
            "The cursor is older than the events that are kept: begin anew without it",
        ),
        422: invalid("after", "It is no cursor of this stream."),
    },
)
