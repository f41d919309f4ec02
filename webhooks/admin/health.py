"""How endpoints fare of late, as cheap for a busy one as for any."""

from typing import Any

from django.db.models import CharField, Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Coalesce

from webhooks.models import Attempt, Delivery, Endpoint

# So many deliveries back is looked.
RECENT_DELIVERIES = 100
FAILING_CONDITION = Q(state=Delivery.State.DEAD) | Q(state=Delivery.State.WAITING, attempted__gt=0)


def annotate_health(endpoints: QuerySet[Endpoint]) -> QuerySet[Any]:
    """How many of each one's RECENT newest deliveries were delivered and how many fail; the last answer, and when."""
    # A span and both columns in order, which one index has: for a plain "of this endpoint, by id" PostgreSQL reads
    # the deliveries of all others until there are enough of a quiet one.
    one = OuterRef(OuterRef("pk"))
    ordered = Delivery.objects.filter(endpoint__gte=one, endpoint__lte=one).order_by("-endpoint_id", "-pk")
    newest = ordered.values("pk")[:RECENT_DELIVERIES]
    recent = Delivery.objects.filter(pk__in=newest)
    # By no indexed column: the newest of all attempts could be of any endpoint, a million rows from this one's.
    attempts = Attempt.objects.filter(delivery__in=newest).order_by("-started_at")
    words = Coalesce(Cast("status", CharField()), "error")
    return endpoints.annotate(
        delivered=count_subquery(recent.filter(state=Delivery.State.DELIVERED)),
        failing=count_subquery(recent.filter(FAILING_CONDITION)),
        last_answer=Subquery(attempts.annotate(words=words).values("words")[:1]),
        last_answer_at=Subquery(attempts.values("started_at")[:1]),
    )


def count_subquery(deliveries: QuerySet[Delivery]) -> Coalesce:
    return Coalesce(Subquery(deliveries.order_by().values("endpoint").annotate(n=Count("*")).values("n")), 0)
