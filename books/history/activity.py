"""Counts the changes of the last days by actor."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count
from django.db.models.functions import TruncHour

from books.models import Change

DAYS = 30


def count_changes(now: datetime) -> dict[str, Any]:
    """Returns the numbers of changes by actor id: `hours` in UTC, and `days` for the release before.

    From hours a page adds up the days of any time zone. `now` is in UTC.
    """
    dates = [(now - timedelta(days=days)).date().isoformat() for days in reversed(range(DAYS))]
    # The days of some time zones begin up to 14 hours earlier.
    first = now - timedelta(days=DAYS + 1)
    rows = Change.objects.filter(at__gte=first).values_list(TruncHour("at", tzinfo=UTC), "actor")
    hours: dict[str, dict[str, int]] = {}
    days = {date: Counter[str]() for date in dates}
    for hour, actor_id, changes in rows.annotate(changes=Count("pk")).order_by():
        hours.setdefault(hour.isoformat(), {})[str(actor_id)] = changes
        # If a clock runs ahead, there are changes of tomorrow.
        days.get(hour.date().isoformat(), Counter[str]())[str(actor_id)] += changes
    return {"hours": hours, "days": days}
