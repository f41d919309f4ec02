"""Sources of metrics that belong to no app, and what all sources share."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import connection
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from library_site.db.checks import MAX_CONNECTIONS_SQL
from library_site.db.sql import fetch_all

# LIBRARY_PROCESS
PROCESSES = ("web", "worker", "command")
CONNECTIONS_SQL = """
    SELECT application_name, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1
"""


def read_redis() -> Iterable[Metric]:
    if settings.REDIS_URL:
        # Imported only if Redis is used.
        from library_site.rate_limit.redis_windows import is_redis_up

        yield GaugeMetricFamily("library_redis_up", "Whether Redis answers.", value=is_redis_up(settings.REDIS_URL))


def read_connections() -> Iterable[Metric]:
    """Counts the connections to PostgreSQL's database by their names, which the processes of the library set."""
    if connection.vendor != "postgresql":
        return
    counts: dict[str, int] = dict(fetch_all(CONNECTIONS_SQL))
    connections = GaugeMetricFamily(
        "library_database_connections", "Connections to the database, by the process that has them.", labels=["process"]
    )
    for process in PROCESSES:
        connections.add_metric([process], counts.pop(f"library-{process}", 0))
    connections.add_metric(["other"], sum(counts.values()))
    yield connections
    [(limit,)] = fetch_all(MAX_CONNECTIONS_SQL)
    yield GaugeMetricFamily("library_database_connections_max", "Connections that the database takes.", value=limit)


def get_seconds(since: datetime | None, now: datetime) -> float:
    """Returns the age in seconds; 0 for None and for a time in the future."""
    return max(0.0, (now - since).total_seconds()) if since else 0.0
