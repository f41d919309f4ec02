"""Sources of metrics that belong to no app."""

from collections.abc import Iterable

from django.conf import settings
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from library_site.http.rate_limit import is_redis_up


def read_redis() -> Iterable[Metric]:
    if settings.REDIS_URL:
        yield GaugeMetricFamily("library_redis_up", "Whether Redis answers.", value=is_redis_up(settings.REDIS_URL))
