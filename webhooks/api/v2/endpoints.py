"""Webhooks, for the people whose they are: what `webhooks.endpoints` and its neighbours do, as version 2 says it."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.exceptions import NotFound
from rest_framework.request import Request

from books.read_model import json_response
from library_site.api.query import require_known
from library_site.api.viewsets import OrderedViewSet, no_content
from oauth.permissions import ScopeOfView
from oauth.server.error_responses import NOT_STORED
from webhooks import endpoints, outbox, replaying
from webhooks.api.v2.schema import (
    ping_document,
    promote_document,
    replay_document,
    secret_document,
    webhooks_document,
)
from webhooks.api.v2.serializers import (
    DeliverySerializer,
    EndpointChangeSerializer,
    EndpointCreateSerializer,
    EndpointSerializer,
    ReplaySerializer,
    SecretCreateSerializer,
)
from webhooks.models import Delivery, Endpoint


class WebhookViewSet(OrderedViewSet):
    permission_classes = [ScopeOfView]
    scope = "webhooks"


@webhooks_document
class Webhooks(WebhookViewSet):
    queryset = Endpoint.objects.order_by("pk")
    body_serializers = {
        "create": EndpointCreateSerializer,
        "partial_update": EndpointChangeSerializer,
        "add_secret": SecretCreateSerializer,
        "replay": ReplaySerializer,
    }

    def list(self, request: Request) -> HttpResponse:
        require_known(request, [])
        shown = EndpointSerializer(endpoints.own(owner(request)), many=True).data
        return json_response({"results": shown, "next": None, "previous": None}, headers=NOT_STORED)

    def create(self, request: Request) -> HttpResponse:
        require_known(request, [])
        values = self.body(request)
        given = values.pop("secret", None)
        with transaction.atomic():
            endpoint, secret = endpoints.add(owner(request), values, given, now=timezone.now())
        location = reverse(f"{request.version}:webhook", kwargs={"webhook_id": endpoint.pk})
        body = {**EndpointSerializer(endpoint).data, "secret": secret}
        return json_response(body, 201, {"Location": location, **NOT_STORED})

    def retrieve(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        return json_response(EndpointSerializer(endpoint).data, headers=NOT_STORED)

    def partial_update(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        endpoints.change(endpoint, self.body(request))
        return json_response(EndpointSerializer(own_endpoint(request, webhook_id)).data, headers=NOT_STORED)

    def destroy(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        endpoints.remove(endpoint)
        return no_content()

    @secret_document
    def add_secret(self, request: Request, webhook_id: int) -> HttpResponse:
        """The body may be absent."""
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        given = self.body(request).get("secret") if request.stream else None
        with transaction.atomic():
            secret = endpoints.add_secret(endpoint, given, now=timezone.now())
        return json_response({"secret": secret}, 201, NOT_STORED)

    @promote_document
    def promote(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        with transaction.atomic():
            endpoints.promote(endpoint)
        return json_response(EndpointSerializer(own_endpoint(request, webhook_id)).data, headers=NOT_STORED)

    @ping_document
    def ping(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        endpoints.require_active(endpoint)
        with transaction.atomic():
            delivery = outbox.ping(endpoint, now=timezone.now())
        return accepted(request, delivery)

    @replay_document
    def replay(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [])
        values = self.body(request)
        endpoints.require_active(endpoint)
        with transaction.atomic():
            count = replaying.replay(endpoint, **values, now=timezone.now())
        return json_response({"deliveries": count}, 202, NOT_STORED)


def own_endpoint(request: Request, webhook_id: int) -> Endpoint:
    """Those of others are not there. Raises NotFound."""
    endpoint: Endpoint | None = endpoints.own(owner(request)).filter(pk=webhook_id).first()
    if not endpoint:
        raise NotFound("Webhook not found")
    return endpoint


def owner(request: Request) -> User:
    return cast("User", request.user)


def accepted(request: Request, delivery: Delivery) -> HttpResponse:
    """A delivery that is yet to be sent."""
    names: dict[str, Any] = {"webhook_id": delivery.endpoint_id, "delivery_id": delivery.pk}
    location = reverse(f"{request.version}:delivery", kwargs=names)
    return json_response(DeliverySerializer(delivery).data, 202, {"Location": location, **NOT_STORED})
