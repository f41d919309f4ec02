"""Deletes expired rows in batches."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils.module_loading import import_string

EXPIRY_BATCH = 1_000


class ExpiryStopped(Exception):
    """Someone stopped it between two batches. The next run deletes the rest."""


def ignore_stop() -> None:
    """For a run to the end."""


def delete_expired(now: datetime, check_stop: Callable[[], None] = ignore_stop) -> dict[str, int]:
    """Deletes what the functions of EXPIRED_ROWS list. Returns the number of deleted rows by kind, in their order.

    `check_stop` is called before each batch, and may raise ExpiryStopped.
    """
    counts: dict[str, int] = {}
    for name in settings.EXPIRED_ROWS:
        counts |= delete_by_kind(import_string(name)(now), check_stop)
    return counts


def delete_by_kind(
    rows_by_kind: Iterable[tuple[str, QuerySet[Any]]], check_stop: Callable[[], None] = ignore_stop
) -> dict[str, int]:
    """Deletes the rows of each kind, which can come in parts. Returns the number of deleted rows by kind."""
    counts: Counter[str] = Counter()
    for kind, rows in rows_by_kind:
        counts[kind] += delete_in_batches(rows, check_stop)
    return counts


def delete_in_batches(rows: QuerySet[Any], check_stop: Callable[[], None] = ignore_stop) -> int:
    """Deletes rows in batches, so that no writer waits long. Returns the number of deleted rows.

    A row that no longer matches when its batch is deleted stays.
    """
    count = 0
    while batch := list(rows.values_list("pk", flat=True)[:EXPIRY_BATCH]):
        check_stop()
        _, counts_by_model = rows.filter(pk__in=batch).delete()
        count += counts_by_model.get(rows.model._meta.label, 0)
    return count
