"""What other services send here (specification, Section 6)."""

import time
from typing import Any

from django.utils.decorators import method_decorator
from django.views.decorators.cache import cache_control
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ParseError, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils import json
from rest_framework.views import APIView

from library_site.http.refusals import Refusal
from webhooks import inbox
from webhooks.models import Received
from webhooks.signing import EVENT, SIGNATURE, InvalidSignature, verify


class SignatureRefused(Refusal):
    """The signature is not valid."""

    status = 401
    message = "The signature is not valid"
    # RFC 9110, 11.6.1 wants a challenge.
    headers = {"WWW-Authenticate": SIGNATURE}


class StringMember(serializers.CharField):
    """A JSON string, kept exactly as sent."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class EventSerializer(serializers.Serializer[Any]):
    """What every event must have; the rest is its handlers' affair."""

    id = StringMember(max_length=Received.event_id.field.max_length, trim_whitespace=False)
    event = StringMember(max_length=Received.kind.field.max_length, trim_whitespace=False)


@method_decorator(cache_control(no_store=True), name="dispatch")
class ReceiveView(APIView):
    """Keeps an event that another service signed. It is worked off later, so that the sender does not wait."""

    http_method_names = ["post"]
    versioning_class = None
    throttle_classes = []
    authentication_classes = []
    permission_classes = []
    schema = None

    def post(self, request: Request, source: str) -> Response:
        body = request.body
        sender = inbox.find_source(source)
        try:
            verify(request.headers, body, inbox.iter_secrets(sender), time.time(), form=sender.form)
        except InvalidSignature as error:
            raise SignatureRefused from error
        event = parse_event(body)
        if request.headers.get(EVENT, event["event"]) != event["event"]:
            raise ValidationError({EVENT: [ErrorDetail("It names another kind than the body.", "invalid")]})
        inbox.store_event(sender, event["id"], event["event"], body)
        return Response({"received": True})


def parse_event(body: bytes) -> dict[str, str]:
    """The members that every event has. Raises ParseError, ValidationError."""
    try:
        told = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise ParseError("The body is not valid JSON.", code="json_invalid") from error
    event = EventSerializer(data=told)
    event.is_valid(raise_exception=True)
    values: dict[str, str] = event.validated_data
    return values
