"""Numbers about all books and changes, for pages that must not count them.

Where counting takes a moment only, a number is counted when it is read. In a large library the worker of operations
counts it now and then, and what is read says when that was.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import DatabaseError, transaction

from books.history.activity import count_changes
from books.models import Summary
from books.search.counts import count_books
from books.search.duplicates import SAME_ISBN, SAME_TITLE, count_pairs

BOOKS, CHANGES = "books", "changes"
DUPLICATES = {SAME_ISBN: "same_isbn", SAME_TITLE: "same_title"}
COUNTERS: Mapping[str, Callable[[datetime], dict[str, Any]]] = {
    BOOKS: lambda now: count_books(now.astimezone(UTC)),
    CHANGES: lambda now: count_changes(now.astimezone(UTC)),
    DUPLICATES[SAME_ISBN]: lambda _: count_pairs(SAME_ISBN),
    DUPLICATES[SAME_TITLE]: lambda _: count_pairs(SAME_TITLE),
}
# What took fewer seconds is counted by each page that shows it, and stored once a minute.
LIVE_SECONDS = 0.03
MIN_AGE = timedelta(minutes=1)
# The worker counts for a hundredth of its time at most.
WORKER_SHARE = 100
# A page counts what no worker has counted for so long.
MAX_AGE = timedelta(hours=1)


def read_summary(name: str, now: datetime) -> Summary:
    """Returns the numbers of one of COUNTERS: as they are now, or as they were at its `counted_at`."""
    summary = Summary.objects.filter(name=name).first()
    if summary and summary.seconds > LIVE_SECONDS and now - summary.counted_at < MAX_AGE:
        return summary
    counted = count(name, now)
    if not summary or now - summary.counted_at >= MIN_AGE:
        # The page has what it shows: it does not fail with a database that takes no writes.
        with suppress(DatabaseError), transaction.atomic():
            store(counted)
    return counted


def find_count_time(summary: Summary, now: datetime) -> datetime | None:
    """Returns when the numbers were counted that were read at this moment; None if that was then."""
    return None if summary.counted_at == now else summary.counted_at


def refresh_summaries(now: datetime) -> None:
    """Counts again what somebody looks at and takes too long for a page."""
    for summary in Summary.objects.filter(seconds__gt=LIVE_SECONDS):
        if now - summary.counted_at >= max(MIN_AGE, timedelta(seconds=summary.seconds * WORKER_SHARE)):
            store(count(summary.name, now))


def count(name: str, now: datetime) -> Summary:
    start = time.perf_counter()
    numbers = COUNTERS[name](now)
    return Summary(name=name, numbers=numbers, counted_at=now, seconds=time.perf_counter() - start)


def store(summary: Summary) -> None:
    values = {"numbers": summary.numbers, "counted_at": summary.counted_at, "seconds": summary.seconds}
    Summary.objects.update_or_create(name=summary.name, defaults=values)
