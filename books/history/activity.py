"""Counts the changes of the last days, by who made them."""

from datetime import datetime, time, timedelta
from typing import Any

from django.db import connection

from books.history.entries import adapt
from library_site.db.sql import fetch_all

DAYS = 30
# A day of UTC, as a text.
DAY_SQL = {"postgresql": "to_char(at, 'YYYY-MM-DD')", "sqlite": "substr(at, 1, 10)"}


def count_changes(now: datetime) -> dict[str, Any]:
    """Returns `days`, the last DAYS days of UTC with their changes by the ids of actors. `now` is in UTC."""
    dates = [(now - timedelta(days=days)).date() for days in reversed(range(DAYS))]
    first = datetime.combine(dates[0], time())
    day = DAY_SQL[connection.vendor]
    sql = f"SELECT {day}, actor_id, count(*) FROM books_change WHERE at >= %s GROUP BY 1, 2"
    counts: dict[str, dict[str, int]] = {date.isoformat(): {} for date in dates}
    for text, actor_id, changes in fetch_all(sql, [adapt(first)]):
        # A clock that runs ahead writes changes of tomorrow.
        counts.get(text, {})[str(actor_id)] = changes
    return {"days": counts}
