"""Prometheus metrics of operations."""

from collections.abc import Iterable

from django.db.models import Count, Min
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from books.models import Operation
from books.operations.lifecycle import UNDER_WAY
from library_site.db.sql import get_database_time
from library_site.monitoring.sources import get_seconds


def read_operations() -> Iterable[Metric]:
    pending = Operation.objects.filter(next_at__isnull=False)
    counts = dict(pending.values_list("state").annotate(count=Count("pk")))
    operations = GaugeMetricFamily(
        "library_operations", "Operations that wait for a worker, or are running.", labels=["state"]
    )
    for state in UNDER_WAY:
        operations.add_metric([state], counts.get(state, 0))
    yield operations
    due = pending.aggregate(due=Min("next_at"))["due"]
    yield GaugeMetricFamily(
        "library_operations_overdue_seconds",
        "For how long the operation that is due longest has been due.",
        value=get_seconds(due, get_database_time()),
    )
