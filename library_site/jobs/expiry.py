"""Deletes expired rows in batches."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from threading import Event
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.module_loading import import_string

EXPIRY_BATCH = 1_000
NEVER = Event()


def delete_expired(now: datetime, stop: Event = NEVER) -> dict[str, int]:
    """Deletes the rows of the functions in EXPIRED_ROWS. Returns the number of deleted rows by name, in this order.

    It ends before the next batch when `stop` is set.
    """
    counts: dict[str, int] = {}
    for name in settings.EXPIRED_ROWS:
        counts |= delete_by_kind(import_string(name)(now), stop)
    return counts


def delete_by_kind(rows_by_kind: Iterable[tuple[str, QuerySet[Any]]], stop: Event = NEVER) -> dict[str, int]:
    """Deletes the rows of each name; a name can occur several times. Returns the number of deleted rows by name."""
    counts: Counter[str] = Counter()
    for kind, rows in rows_by_kind:
        counts[kind] += delete_in_batches(rows, stop)
    return counts


def delete_in_batches(rows: QuerySet[Any], stop: Event) -> int:
    """Deletes rows in batches, so that writers do not wait long. Returns the number of deleted rows.

    A row that does not match any more when its batch is deleted stays.
    """
    count = 0
    while not stop.is_set() and (batch := list(rows.values_list("pk", flat=True)[:EXPIRY_BATCH])):
        _, counts_by_model = rows.filter(pk__in=batch).delete()
        count += counts_by_model.get(rows.model._meta.label, 0)
    return count
