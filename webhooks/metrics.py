"""Metrics of the deliveries, and of the deletion of expired rows."""

from collections.abc import Iterable

from django.db.models import Count, Min, Sum
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from library_site.db.sql import get_database_time
from library_site.monitoring.sources import get_seconds
from webhooks.delivery.leases import pending_deliveries
from webhooks.models import Clearing, DeliveryCount


def read_deliveries() -> Iterable[Metric]:
    pending = pending_deliveries().aggregate(count=Count("pk"), oldest=Min("created_at"), due=Min("next_at"))
    now = get_database_time()
    yield GaugeMetricFamily(
        "library_deliveries_waiting", "Deliveries that wait or are being sent.", value=pending["count"]
    )
    yield GaugeMetricFamily(
        "library_deliveries_oldest_seconds",
        "The age of the oldest delivery that waits.",
        value=get_seconds(pending["oldest"], now),
    )
    yield GaugeMetricFamily(
        "library_deliveries_overdue_seconds",
        "For how long the delivery that is due longest has been due.",
        value=get_seconds(pending["due"], now),
    )
    results = CounterMetricFamily(
        "library_deliveries", "Attempts by their result: sent, failed and tried again, or dead.", labels=["result"]
    )
    totals = DeliveryCount.objects.aggregate(sent=Sum("sent"), failed=Sum("failed"), dead=Sum("dead"))
    for result, total in totals.items():
        results.add_metric([result], total or 0)
    yield results


def read_expiry() -> Iterable[Metric]:
    """Reports 0 while a worker has the lease: `next_at` is then the end of the lease."""
    due = Clearing.objects.aggregate(due=Min("next_at"))["due"]
    yield GaugeMetricFamily(
        "library_expiry_overdue_seconds",
        "For how long the daily deletion of expired rows has been due.",
        value=get_seconds(due, get_database_time()),
    )
