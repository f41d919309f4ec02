"""The deliveries of an endpoint in version 2."""

from typing import Any, cast

from django.db import transaction
from django.db.models import Prefetch, QuerySet, prefetch_related_objects
from django.http import HttpResponse
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.response import Response

from library_site.api.pagination import NewestFirstPagination
from library_site.api.query import FieldErrors, check_parameters
from library_site.api.responses import NO_STORE
from library_site.http.api_errors import APIError
from webhooks import endpoints
from webhooks.api.v2.documents import document_deliveries, document_redeliver
from webhooks.api.v2.endpoints import WebhookViewSet, build_accepted_response, list_visible_endpoints
from webhooks.api.v2.serializers import FILTER_CHOICES, DeliverySerializer, SentDeliverySerializer
from webhooks.models import Attempt, Delivery
from webhooks.permissions import DELIVERY_ACTIONS

FILTER_FIELDS = {"state": "state", "kind": "event__kind"}


class DeliveryNotFound(APIError):
    """The webhook has no such delivery."""

    status_code = 404
    default_detail = "Delivery not found"


@document_deliveries
class DeliveryViewSet(WebhookViewSet):
    required_permissions = DELIVERY_ACTIONS
    noun, plural = "delivery", "deliveries"
    not_found = DeliveryNotFound
    queryset = Delivery.objects.order_by("-pk")
    lookup_url_kwarg = "delivery_id"
    pagination_class = NewestFirstPagination

    def list(self, request: Request, webhook_id: int) -> Response:
        deliveries = self.get_queryset()
        paginator = cast("Any", self.paginator)
        check_parameters(request, [*FILTER_FIELDS, *self.list_page_parameters()])
        texts = {name: request.query_params[name] for name in FILTER_FIELDS if name in request.query_params}
        paginator.check(request, find_invalid_choices(texts))
        filters = {FILTER_FIELDS[name]: text for name, text in texts.items()}
        rows = self.paginate_queryset(deliveries.filter(**filters).defer("event__body"))
        return self.get_paginated_response(DeliverySerializer(rows, many=True).data)

    def retrieve(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.get_object()
        prefetch_related_objects([delivery], Prefetch("attempts", Attempt.objects.order_by("pk")))
        return Response(SentDeliverySerializer(delivery).data, headers=NO_STORE)

    @document_redeliver
    def redeliver(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.get_object()
        with transaction.atomic():
            [new_delivery] = endpoints.redeliver([delivery])
        return build_accepted_response(request, new_delivery)

    def get_queryset(self) -> QuerySet[Delivery]:
        """Raises EndpointNotFound, also for the endpoint of another user or app."""
        endpoint = list_visible_endpoints(self.request).filter(pk=self.kwargs["webhook_id"]).first()
        if not endpoint:
            raise endpoints.EndpointNotFound
        return endpoint.deliveries.select_related("event").order_by("-pk")


def find_invalid_choices(parameters: dict[str, str]) -> FieldErrors:
    return {
        name: [ErrorDetail(f"It is one of {', '.join(FILTER_CHOICES[name])}.", "enum")]
        for name, value in parameters.items()
        if value not in FILTER_CHOICES[name]
    }
