"""Sources of metrics that belong to no app, and what all sources share."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from library_site.http.rate_limit import is_redis_up


def read_redis() -> Iterable[Metric]:
    if settings.REDIS_URL:
        yield GaugeMetricFamily("library_redis_up", "Whether Redis answers.", value=is_redis_up(settings.REDIS_URL))


def get_seconds(since: datetime | None, now: datetime) -> float:
    """0 for none, and for a time to come."""
    return max(0.0, (now - since).total_seconds()) if since else 0.0
