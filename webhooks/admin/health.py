"""The recent results of endpoints, at a cost that does not grow with their deliveries."""

from typing import Any

from django.db.models import CharField, Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Coalesce

from webhooks.models import Attempt, Delivery, Endpoint

# The health of an endpoint counts this many of its newest deliveries.
RECENT_DELIVERIES = 100
FAILING_CONDITION = Q(state=Delivery.State.DEAD) | Q(state=Delivery.State.WAITING, attempted__gt=0)


def annotate_health(endpoints: QuerySet[Endpoint]) -> QuerySet[Any]:
    """Adds counts of the delivered and the failing ones among RECENT_DELIVERIES, and the last answer with its time."""
    # A range, and both columns in the order, match one index. With a plain filter by endpoint, ordered by id,
    # PostgreSQL would read the deliveries of all endpoints until it has enough for one with few deliveries.
    pk = OuterRef(OuterRef("pk"))
    deliveries = Delivery.objects.filter(endpoint__gte=pk, endpoint__lte=pk).order_by("-endpoint_id", "-pk")
    newest_ids = deliveries.values("pk")[:RECENT_DELIVERIES]
    recent_deliveries = Delivery.objects.filter(pk__in=newest_ids)
    # Not by an indexed column: PostgreSQL would read the newest attempts of all endpoints, maybe a million rows.
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
