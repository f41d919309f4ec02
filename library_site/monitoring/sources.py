"""Sources of metrics that belong to no app, and what all sources share."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from prometheus_client.metrics_core import GaugeMetricFamily, Metric


def read_redis() -> Iterable[Metric]:
    if settings.REDIS_URL:
        # Imported only if Redis is used.
        from library_site.rate_limit.redis_windows import is_redis_up

        yield GaugeMetricFamily("library_redis_up", "Whether Redis answers.", value=is_redis_up(settings.REDIS_URL))


def get_seconds(since: datetime | None, now: datetime) -> float:
    """0 for none, and for a time to come."""
    return max(0.0, (now - since).total_seconds()) if since else 0.0
