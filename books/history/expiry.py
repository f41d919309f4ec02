"""Finds history that is older than HISTORY_KEPT_DAYS, for deletion."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from books.models import Change, Operation

# A statement reads at most so many rows, even if it deletes none.
ID_RANGE = 1_000


def iter_expired(now: datetime) -> Iterator[tuple[str, QuerySet[Any]]]:
    """Yields changes in ranges of ids, and then the operations without changes.

    The creation and the last change of a book are not deleted. If the last change is a deletion, it contains the book,
    so the book can be restored.
    """
    if not settings.HISTORY_KEPT_DAYS:
        return
    cutoff = now - timedelta(days=settings.HISTORY_KEPT_DAYS)
    changes = Change.objects.filter(at__lte=cutoff)
    operations = Operation.objects.filter(created_at__lte=cutoff, next_at=None)
    has_later_change = Exists(Change.objects.filter(book_id=OuterRef("book_id"), version__gt=OuterRef("version")))
    for rows in split_by_id(changes):
        yield "changes", rows.exclude(kind=Change.Kind.CREATED).filter(has_later_change)
    for rows in split_by_id(operations):
        yield "operations", rows.filter(change=None)


def split_by_id(rows: QuerySet[Any]) -> Iterator[QuerySet[Any]]:
    """Yields the rows in ranges of their ids; at least one range."""
    pks = rows.order_by("pk").values_list("pk", flat=True)
    first, last = pks.first() or 0, pks.last() or 0
    for start in range(first, last + 1, ID_RANGE):
        yield rows.filter(pk__range=(start, start + ID_RANGE - 1))
