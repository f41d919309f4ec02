"""One queue for deliveries and received events: rows of a LeasedModel, each with one worker at a time.

A row is due at `next_at`. A worker that leases it moves `next_at` to the end of the lease, so the rows of a
worker that died become due again. All times are the database's.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection
from django.db.models import F, Model
from django.db.models.functions import Now

from library_site.db.sql import Row, execute, fetch_all, id_list, now_plus

# At least twice as long as a request may take.
LEASE_TIME = timedelta(seconds=30)
# After more lost workers than these, a row is not leased again.
MAX_LOST_WORKERS = 10
POISONED_REASON = f"Poison: more than {MAX_LOST_WORKERS} workers did not come back from it."
# Seconds after the first to the fourth attempt; the fifth is the last.
RETRY_DELAYS = (10, 60, 600, 3600)
MAX_RETRY_DELAY = timedelta(seconds=RETRY_DELAYS[-1])
LEASE_SQL = (
    "UPDATE {} SET next_at = {}, lease = %s, claimed = claimed + 1 WHERE id IN ({}) AND next_at <= {} RETURNING {}"
)
LEASED_SQL = "SELECT id, lease FROM {} WHERE id IN ({}) AND lease IS NOT NULL{}"
FINISH_SQL = (
    "UPDATE {} SET state = %s, next_at = NULL, lease = NULL, finished_at = {}, attempted = attempted + %s{}"
    " WHERE id IN ({})"
)


def lease_rows(model: type[Model], pks: Collection[int], columns: Sequence[str]) -> tuple[UUID, list[Row]]:
    """Leases those of the rows that are due for LEASE_TIME. Returns the lease, and these columns of the leased rows."""
    lease = uuid4()
    sql = LEASE_SQL.format(
        model._meta.db_table, now_plus(LEASE_TIME.seconds), id_list(pks), now_plus(0), ", ".join(columns)
    )
    return lease, fetch_all(sql, [lease.hex])


def is_poisoned(attempted: int, claimed: int) -> bool:
    """Whether more than MAX_LOST_WORKERS workers leased a row and never came back."""
    return claimed > attempted + MAX_LOST_WORKERS


def keep_leased(model: type[Model], leases: Mapping[int, UUID], lock: bool) -> set[int]:
    """The ids of the rows that still have their lease; with `lock`, no other worker leases them in this transaction."""
    suffix = " FOR UPDATE" if lock and connection.vendor == "postgresql" else ""
    rows = fetch_all(LEASED_SQL.format(model._meta.db_table, id_list(leases), suffix))
    return {pk for pk, lease in rows if UUID(str(lease)) == leases[pk]}


def finish_rows(model: type[Model], pks: Collection[int], state: str, attempts: int = 1, **values: Any) -> None:
    """Ends rows in this state, adds `attempts` to their attempts and sets these columns."""
    if not pks:
        return
    assignments = "".join(f", {name} = %s" for name in values)
    sql = FINISH_SQL.format(model._meta.db_table, now_plus(0), assignments, id_list(pks))
    execute(sql, [state, attempts, *values.values()])


def retry_row(model: type[Model], pk: int, delay: timedelta, **values: Any) -> None:
    """Adds an attempt to a row, and makes it due after the delay."""
    model._default_manager.filter(pk=pk).update(
        next_at=Now() + delay, lease=None, attempted=F("attempted") + 1, **values
    )


def is_last_attempt(attempt: int) -> bool:
    """`attempt` counts from 1."""
    return attempt > len(RETRY_DELAYS)


def get_retry_delay(attempt: int, chance: float) -> timedelta:
    """The delay after an attempt that is not the last, with 20 percent of jitter: `chance` is from 0 to 1."""
    return timedelta(seconds=RETRY_DELAYS[attempt - 1] * (0.8 + 0.4 * chance))
