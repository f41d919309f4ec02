"""Counts the changes of the last days by actor."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.db.models import Count
from django.db.models.functions import TruncDate

from books.models import Change

DAYS = 30


def count_changes(now: datetime) -> dict[str, Any]:
    """Returns `days`: the last DAYS days in UTC, each with its number of changes by actor id. `now` is in UTC."""
    dates = [(now - timedelta(days=days)).date() for days in reversed(range(DAYS))]
    first = datetime.combine(dates[0], time(), UTC)
    days = Change.objects.filter(at__gte=first).values_list(TruncDate("at", tzinfo=UTC), "actor")
    counts: dict[str, dict[str, int]] = {date.isoformat(): {} for date in dates}
    for day, actor_id, changes in days.annotate(changes=Count("pk")).order_by():
        # If a clock runs ahead, there are changes of tomorrow.
        counts.get(day.isoformat(), {})[str(actor_id)] = changes
    return {"days": counts}
