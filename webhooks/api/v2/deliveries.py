"""The deliveries of an endpoint in version 2."""

from typing import NamedTuple

import msgspec
from django.db import transaction
from django.db.models import F, Prefetch, QuerySet
from django.http import HttpResponse
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError
from rest_framework.request import Request

from library_site.api.query import (
    DEFAULT_PAGE_SIZE,
    MAX_PAGE_SIZE,
    FieldErrors,
    build_link,
    check_parameters,
    read_integer,
)
from library_site.api.responses import NO_STORE, json_response
from library_site.db.integers import BIGINT_MAX
from library_site.db.keyset import Start, build_condition, cut_page, get_id_key
from webhooks import endpoints
from webhooks.api.v2.documents import document_deliveries, document_redeliver
from webhooks.api.v2.endpoints import WebhookViewSet, accepted_response, get_own_endpoint
from webhooks.api.v2.serializers import FILTER_CHOICES, DeliverySerializer, WholeDeliverySerializer
from webhooks.models import Attempt, Delivery

FILTER_FIELDS = {"state": "state", "kind": "event__kind"}


class DeliveryQuery(NamedTuple):
    """The parameters of a list; `cursor` is the last id of the page before."""

    filters: dict[str, str]
    cursor: int
    limit: int


@document_deliveries
class DeliveryViewSet(WebhookViewSet):
    queryset = Delivery.objects.order_by("-pk")
    body_serializers = {}

    def list(self, request: Request, webhook_id: int) -> HttpResponse:
        """The newest first."""
        endpoint = get_own_endpoint(request, webhook_id)
        check_parameters(request, [*FILTER_FIELDS, "cursor", "limit"])
        filters, cursor, limit = read_query(request)
        older = build_condition([F("id")], (cursor,), descending=True)
        rows = select_events(endpoint.deliveries.filter(older, **filters)).defer("event__body").order_by("-pk")
        page = cut_page(list(rows[: limit + 1]), limit, Start((cursor,)), get_id_key)
        next_link = build_link(request, cursor=str(*page.behind)) if page.behind else None
        results = DeliverySerializer(page.rows, many=True).data
        return json_response({"results": results, "next": next_link, "previous": None}, headers=NO_STORE)

    def retrieve(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.get_delivery(request, webhook_id, delivery_id)
        check_parameters(request, [])
        body = msgspec.Raw(bytes(delivery.event.body))
        return json_response({**WholeDeliverySerializer(delivery).data, "body": body}, headers=NO_STORE)

    @document_redeliver
    def redeliver(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.get_delivery(request, webhook_id, delivery_id)
        check_parameters(request, [])
        with transaction.atomic():
            [new_delivery] = endpoints.redeliver([delivery])
        return accepted_response(request, new_delivery)

    def get_delivery(self, request: Request, webhook_id: int, delivery_id: int) -> Delivery:
        """With its event and attempts. Raises NotFound."""
        endpoint = get_own_endpoint(request, webhook_id)
        attempts = Prefetch("attempts", Attempt.objects.order_by("pk"))
        delivery = select_events(endpoint.deliveries.filter(pk=delivery_id)).prefetch_related(attempts).first()
        if not delivery:
            raise NotFound("Delivery not found")
        return delivery


def select_events(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    return deliveries.select_related("event")


def read_query(request: Request) -> DeliveryQuery:
    """Raises ValidationError."""
    limit, limit_errors = read_integer(request, "limit", DEFAULT_PAGE_SIZE, 1, MAX_PAGE_SIZE)
    cursor, cursor_errors = read_integer(request, "cursor", BIGINT_MAX, 1, BIGINT_MAX)
    parameters = {name: request.query_params[name] for name in FILTER_FIELDS if name in request.query_params}
    if errors := find_invalid_choices(parameters) | limit_errors | cursor_errors:
        raise ValidationError(errors)
    return DeliveryQuery({FILTER_FIELDS[name]: value for name, value in parameters.items()}, cursor, limit)


def find_invalid_choices(parameters: dict[str, str]) -> FieldErrors:
    return {
        name: [ErrorDetail(f"It is one of {', '.join(FILTER_CHOICES[name])}.", "enum")]
        for name, value in parameters.items()
        if value not in FILTER_CHOICES[name]
    }
