"""What became of each event that an endpoint takes."""

from typing import NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse
from rest_framework.exceptions import ErrorDetail, NotFound, ValidationError
from rest_framework.request import Request

from books.api.pagination import KeysetPagination
from books.read_model import json_response
from library_site.api.query import Problems, bounded, following, require_known
from library_site.db.integers import LARGEST
from oauth.server.error_responses import NOT_STORED
from webhooks import endpoints, replaying
from webhooks.api.v2.endpoints import WebhookViewSet, accepted, own_endpoint
from webhooks.api.v2.schema import deliveries_document, redeliver_document
from webhooks.api.v2.serializers import CHOICES, DeliverySerializer, WholeDeliverySerializer
from webhooks.models import Attempt, Delivery

FILTERS = {"state": "state", "kind": "event__kind"}


class Asked(NamedTuple):
    """Which page of which deliveries; `cursor` is the last id of the page before."""

    filters: dict[str, str]
    cursor: int
    limit: int


@deliveries_document
class Deliveries(WebhookViewSet):
    queryset = Delivery.objects.order_by("-pk")
    body_serializers = {}

    def list(self, request: Request, webhook_id: int) -> HttpResponse:
        """The newest first."""
        endpoint = own_endpoint(request, webhook_id)
        require_known(request, [*FILTERS, "cursor", "limit"])
        filters, cursor, limit = asked(request)
        found = with_events(endpoint.deliveries.filter(**filters, pk__lt=cursor)).defer("event__body")
        # One more tells whether there is another page.
        rows = list(found.order_by("-pk")[: limit + 1])
        later = following(request, cursor=str(rows[limit - 1].pk)) if len(rows) > limit else None
        shown = DeliverySerializer(rows[:limit], many=True).data
        return json_response({"results": shown, "next": later, "previous": None}, headers=NOT_STORED)

    def retrieve(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.delivery(request, webhook_id, delivery_id)
        require_known(request, [])
        body = msgspec.Raw(bytes(delivery.event.body))
        return json_response({**WholeDeliverySerializer(delivery).data, "body": body}, headers=NOT_STORED)

    @redeliver_document
    def redeliver(self, request: Request, webhook_id: int, delivery_id: int) -> HttpResponse:
        delivery = self.delivery(request, webhook_id, delivery_id)
        require_known(request, [])
        endpoints.require_active(delivery.endpoint)
        with transaction.atomic():
            again = replaying.redeliver(delivery)
        return accepted(request, again)

    def delivery(self, request: Request, webhook_id: int, delivery_id: int) -> Delivery:
        """With all that is told of it. Raises NotFound."""
        endpoint = own_endpoint(request, webhook_id)
        log = Prefetch("attempts", Attempt.objects.order_by("pk"))
        found = with_events(endpoint.deliveries.filter(pk=delivery_id)).prefetch_related(log).first()
        if not found:
            raise NotFound("Delivery not found")
        return found


def with_events(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    return deliveries.select_related("event")


def asked(request: Request) -> Asked:
    """Raises ValidationError."""
    limit, wrong_limit = bounded(request, "limit", KeysetPagination.default_limit, 1, KeysetPagination.max_limit)
    cursor, wrong_cursor = bounded(request, "cursor", LARGEST, 1, LARGEST)
    given = {name: request.query_params[name] for name in FILTERS if name in request.query_params}
    if problems := wrong_choices(given) | wrong_limit | wrong_cursor:
        raise ValidationError(problems)
    return Asked({FILTERS[name]: value for name, value in given.items()}, cursor, limit)


def wrong_choices(given: dict[str, str]) -> Problems:
    return {
        name: [ErrorDetail(f"It is one of {', '.join(CHOICES[name])}.", "enum")]
        for name, value in given.items()
        if value not in CHOICES[name]
    }
