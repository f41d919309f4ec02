"""The endpoint that receives events of other services (specification, Section 6; Standard Webhooks 1.0)."""

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

from library_site.api.serializers import StringField
from library_site.http.api_errors import APIError
from webhooks import inbox
from webhooks.models import Received, SignatureForm
from webhooks.signing import EVENT, SIGNATURE, STANDARD_ID, STANDARD_SIGNATURE, InvalidSignature, verify


class SignatureRefused(APIError):
    """The signature is not valid."""

    status_code = 401
    default_detail = "The signature is not valid"
    # RFC 9110, 11.6.1 requires a challenge.
    headers = {"WWW-Authenticate": SIGNATURE}


class StandardSignatureRefused(SignatureRefused):
    """The source signs in form C."""

    headers = {"WWW-Authenticate": STANDARD_SIGNATURE}


class EventSerializer(serializers.Serializer[Any]):
    """The fields that every event must have; its handlers check the others."""

    id = StringField(max_length=Received.event_id.field.max_length, allow_blank=False)
    event = StringField(max_length=Received.kind.field.max_length, allow_blank=False)


@method_decorator(cache_control(no_store=True), name="dispatch")
class ReceiveView(APIView):
    """Stores an event that another service signed. A worker processes it later, so that the sender does not wait."""

    http_method_names = ["post"]
    versioning_class = None
    throttle_classes = []
    authentication_classes = []
    permission_classes = []
    schema = None

    def post(self, request: Request, source: str) -> Response:
        body = request.body
        sender = inbox.get_source(source)
        try:
            verify(request.headers, body, inbox.iter_secrets(sender), time.time(), form=sender.form)
        except InvalidSignature as error:
            is_standard = sender.form == SignatureForm.C
            raise (StandardSignatureRefused if is_standard else SignatureRefused) from error
        # In form C the id in the header is signed. The body may have another id or none.
        signed_id = request.headers[STANDARD_ID] if sender.form == SignatureForm.C else None
        event = parse_event(body, signed_id)
        if request.headers.get(EVENT, event["event"]) != event["event"]:
            raise ValidationError({EVENT: [ErrorDetail("It names another kind than the body.", "invalid")]})
        inbox.store_event(sender, event["id"], event["event"], body)
        return Response({"received": True})


def parse_event(body: bytes, signed_id: str | None) -> dict[str, str]:
    """Returns the fields that every event has. Raises ParseError and ValidationError."""
    try:
        document = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        raise ParseError("The body is not valid JSON.", code="json_invalid") from error
    if signed_id is not None and isinstance(document, dict):
        # Standard Webhooks recommends the name `type`.
        kind = {"event": document["type"]} if "type" in document else {}
        document = {**kind, **document, "id": signed_id}
    event = EventSerializer(data=document)
    event.is_valid(raise_exception=True)
    values: dict[str, str] = event.validated_data
    return values
