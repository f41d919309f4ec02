"""Metrics of the deliveries, and of the deletion of expired rows."""

from collections.abc import Iterable

from django.db.models import Count, Min, Sum
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from library_site.db.sql import get_database_time
from library_site.monitoring.sources import get_seconds
from webhooks.delivery.leases import IS_IN_FLIGHT, list_pending_deliveries
from webhooks.models import Clearing, DeliveryCount

# Each series of a metric costs memory in Prometheus.
MAX_NAMED_ENDPOINTS = 10


def read_deliveries() -> Iterable[Metric]:
    in_flight = Count("pk", filter=IS_IN_FLIGHT)
    endpoints = list(
        list_pending_deliveries()
        .values("endpoint")
        .annotate(waiting=Count("pk"), in_flight=in_flight, oldest=Min("created_at"), due=Min("next_at"))
        .order_by("oldest")
    )
    now = get_database_time()
    yield GaugeMetricFamily(
        "library_deliveries_waiting",
        "Deliveries that wait or are being sent.",
        value=sum(row["waiting"] for row in endpoints),
    )
    oldest = GaugeMetricFamily(
        "library_deliveries_oldest_seconds",
        f"The age of the oldest delivery that waits, of the {MAX_NAMED_ENDPOINTS} endpoints where it is highest.",
        labels=["endpoint"],
    )
    for row in endpoints[:MAX_NAMED_ENDPOINTS]:
        oldest.add_metric([str(row["endpoint"])], get_seconds(row["oldest"], now))
    yield oldest
    # What waits while others to the same endpoint are being sent waits for its receiver, and not for a worker.
    due = min((row["due"] for row in endpoints if not row["in_flight"]), default=None)
    yield GaugeMetricFamily(
        "library_deliveries_overdue_seconds",
        "For how long the delivery that is due longest has been due, to an endpoint where none is being sent.",
        value=get_seconds(due, now),
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
