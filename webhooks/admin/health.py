"""The recent results of endpoints, at a cost that does not depend on the number of deliveries."""

from typing import Any

from django.db.models import CharField, Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Coalesce

from webhooks.models import Attempt, Delivery, Endpoint

# The health of an endpoint counts this many of its newest deliveries.
RECENT_DELIVERIES = 100
FAILING_CONDITION = Q(state=Delivery.State.DEAD) | Q(state=Delivery.State.WAITING, attempted__gt=0)


def annotate_health(endpoints: QuerySet[Endpoint]) -> QuerySet[Any]:
    """Annotates how many of RECENT_DELIVERIES succeeded and failed, and the last response with its time."""
    # The range and the order by both columns match one index. With a plain filter by endpoint and an order by id,
    # PostgreSQL would read the deliveries of all endpoints to find enough for an endpoint with few deliveries.
    pk = OuterRef(OuterRef("pk"))
    deliveries = Delivery.objects.filter(endpoint__gte=pk, endpoint__lte=pk).order_by("-endpoint_id", "-pk")
    newest_ids = deliveries.values("pk")[:RECENT_DELIVERIES]
    recent_deliveries = Delivery.objects.filter(pk__in=newest_ids)
    # The order uses no index on purpose: PostgreSQL would read the newest attempts of all endpoints, maybe a million.
    attempts = Attempt.objects.filter(delivery__in=newest_ids).order_by("-started_at")
    text = Coalesce(Cast("status", CharField()), "error")
    return endpoints.annotate(
        delivered=count_subquery(recent_deliveries.filter(state=Delivery.State.DELIVERED)),
        failing=count_subquery(recent_deliveries.filter(FAILING_CONDITION)),
        last_answer=Subquery(attempts.annotate(text=text).values("text")[:1]),
        last_answer_at=Subquery(attempts.values("started_at")[:1]),
    )


def count_subquery(deliveries: QuerySet[Delivery]) -> Coalesce:
    return Coalesce(Subquery(deliveries.order_by().values("endpoint").annotate(n=Count("*")).values("n")), 0)
