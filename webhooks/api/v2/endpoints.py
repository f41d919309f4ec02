"""A user's endpoints in version 2, where they are called webhooks."""

from typing import Any, cast

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response

from library_site.api.query import check_parameters
from library_site.api.responses import NO_STORE, RETRY_SOON, make_empty_response
from library_site.api.viewsets import APIViewSet
from oauth import issuers
from oauth.credentials import Credential
from oauth.issuers import Issuer
from oauth.permissions import HasCredential, HasUser
from webhooks import endpoints
from webhooks.api.v2.documents import (
    DELIVERY_ID,
    ENDPOINT_EXAMPLE,
    WEBHOOK_ID,
    document_add_secret,
    document_endpoints,
    document_ping,
    document_promote,
    document_replay,
)
from webhooks.api.v2.serializers import (
    DeliverySerializer,
    ReplayRequestSerializer,
    WebhookChangeSerializer,
    WebhookCreateSerializer,
    WebhookSecretCreateSerializer,
    WebhookSerializer,
)
from webhooks.models import Delivery, Endpoint
from webhooks.permissions import ENDPOINT_ACTIONS


class WebhookViewSet(APIViewSet):
    permission_classes = [HasCredential, HasUser]
    scope = "webhooks"
    tag = "Webhooks"
    path_parameters = [WEBHOOK_ID, DELIVERY_ID]

    def get_object(self) -> Any:
        """Raises `not_found`, and UnknownParameter: these URLs accept no parameters."""
        row = super().get_object()
        check_parameters(self.request, [])
        return row


@document_endpoints
class EndpointViewSet(WebhookViewSet):
    required_permissions = ENDPOINT_ACTIONS
    noun = "webhook"
    not_found = endpoints.EndpointNotFound
    queryset = Endpoint.objects.order_by("pk")
    lookup_url_kwarg = "webhook_id"
    serializer_class = WebhookSerializer
    example = ENDPOINT_EXAMPLE
    body_serializers = {
        "create": WebhookCreateSerializer,
        "partial_update": WebhookChangeSerializer,
        "add_secret": WebhookSecretCreateSerializer,
        "replay": ReplayRequestSerializer,
    }

    def list(self, request: Request) -> HttpResponse:
        check_parameters(request, [])
        results = WebhookSerializer(self.get_queryset(), many=True).data
        return Response({"results": results, "next": None, "previous": None}, headers=NO_STORE)

    def create(self, request: Request) -> HttpResponse:
        check_parameters(request, [])
        values = self.read_values(request)
        requested_secret = values.pop("secret", None)
        with transaction.atomic():
            creator, now = lock_request_issuer(request), timezone.now()
            endpoint, secret = endpoints.create_endpoint(get_owner(request), values, requested_secret, now, creator)
        location = reverse(f"{request.version}:webhook", kwargs={"webhook_id": endpoint.pk})
        body = {**WebhookSerializer(endpoint).data, "secret": secret}
        return Response(body, 201, headers={"Location": location, **NO_STORE})

    def retrieve(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        return Response(WebhookSerializer(endpoint).data, headers=NO_STORE)

    def partial_update(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        values = self.read_values(request)
        with transaction.atomic():
            endpoints.change_endpoint(endpoint, values, lock_request_issuer(request))
        return Response(WebhookSerializer(self.get_object()).data, headers=NO_STORE)

    def destroy(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        with transaction.atomic():
            lock_request_issuer(request)
            endpoints.delete_endpoint(endpoint)
        return make_empty_response()

    @document_add_secret
    def add_secret(self, request: Request, webhook_id: int) -> HttpResponse:
        """The body may be absent."""
        endpoint = self.get_object()
        requested_secret = self.read_values(request).get("secret") if request.stream else None
        with transaction.atomic():
            lock_request_issuer(request)
            secret = endpoints.add_endpoint_secret(endpoint, requested_secret, now=timezone.now())
        return Response({"secret": secret, "key_encoding": endpoint.key_encoding}, 201, headers=NO_STORE)

    @document_promote
    def promote(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        with transaction.atomic():
            lock_request_issuer(request)
            endpoints.promote_secret(endpoint)
        return Response(WebhookSerializer(self.get_object()).data, headers=NO_STORE)

    @document_ping
    def ping(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        with transaction.atomic():
            [delivery] = endpoints.ping([endpoint], timezone.now())
        return build_accepted_response(request, delivery)

    @document_replay
    def replay(self, request: Request, webhook_id: int) -> HttpResponse:
        endpoint = self.get_object()
        values = self.read_values(request)
        with transaction.atomic():
            count = endpoints.replay_events(endpoint, **values, now=timezone.now())
        return Response({"deliveries": count}, 202, headers=NO_STORE)

    def get_queryset(self) -> QuerySet[Endpoint]:
        return list_visible_endpoints(self.request)


def list_visible_endpoints(request: Request) -> QuerySet[Endpoint]:
    """Returns the user's endpoints that the credential can see."""
    issued = issuers.build_issued_condition(cast("Credential", request.auth))
    return endpoints.list_own_endpoints(get_owner(request), issued)


def lock_request_issuer(request: Request) -> Issuer:
    """Needs a transaction. Raises InvalidCredential."""
    return issuers.lock_issuer(cast("Credential", request.auth), timezone.now())


def get_owner(request: Request) -> User:
    return cast("User", request.user)


def build_accepted_response(request: Request, delivery: Delivery) -> HttpResponse:
    arguments: dict[str, Any] = {"webhook_id": delivery.endpoint_id, "delivery_id": delivery.pk}
    location = reverse(f"{request.version}:delivery", kwargs=arguments)
    return Response(DeliverySerializer(delivery).data, 202, headers={"Location": location, **RETRY_SOON, **NO_STORE})
