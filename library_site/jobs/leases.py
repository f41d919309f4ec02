"""Queues in the database: rows of a LeasedModel, each with one worker at a time, on any number of machines.

A row is due at `next_at`. A worker that leases it moves `next_at` to the end of the lease, so the rows of a
worker that died become due again. All times are the database's.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from library_site.db.sql import Row, execute, fetch_all, id_list, now_plus

# At least twice as long as a worker needs until it ends or renews a lease.
LEASE_TIME = timedelta(seconds=30)
# After more lost workers than these, a row is not leased again.
MAX_LOST_WORKERS = 10
POISON_TEXT = gettext_noop("Poison: more than %(count)s workers did not come back from it.")
POISONED_REASON = POISON_TEXT % {"count": MAX_LOST_WORKERS}
LEASE_SQL = (
    "UPDATE {} SET next_at = {}, lease = %s, claimed = claimed + 1 WHERE id IN ({}) AND next_at <= {} RETURNING {}"
)
LEASED_SQL = "SELECT id, lease FROM {} WHERE id IN ({}) AND lease IS NOT NULL{}"
FINISH_SQL = (
    "UPDATE {} SET state = %s, next_at = NULL, lease = NULL, finished_at = {}, attempted = attempted + %s{}"
    " WHERE id IN ({})"
)


class LeasedModel(models.Model):
    """A row that one worker at a time leases. `next_at` is when it is due and, during a lease, when the lease ends."""

    # By the database's clock, which all workers share.
    next_at = models.DateTimeField(_("next at"), null=True, db_default=Now())
    lease = models.UUIDField(null=True)
    attempted = models.PositiveSmallIntegerField(_("attempted"), default=0, db_default=0)
    # The number of leases: more than `attempted` if workers died.
    claimed = models.PositiveSmallIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        abstract = True


def lease_rows(model: type[models.Model], pks: Collection[int], columns: Sequence[str]) -> tuple[UUID, list[Row]]:
    """Leases those of the rows that are due for LEASE_TIME. Returns the lease, and these columns of the leased rows."""
    lease = uuid4()
    sql = LEASE_SQL.format(
        model._meta.db_table, now_plus(LEASE_TIME.seconds), id_list(pks), now_plus(0), ", ".join(columns)
    )
    return lease, fetch_all(sql, [lease.hex])


def is_poisoned(attempted: int, claimed: int) -> bool:
    """Whether more than MAX_LOST_WORKERS workers leased a row and never came back."""
    return claimed > attempted + MAX_LOST_WORKERS


def keep_leased(model: type[models.Model], leases: Mapping[int, UUID], lock: bool) -> set[int]:
    """The ids of the rows that still have their lease; with `lock`, no other worker leases them in this transaction."""
    suffix = " FOR UPDATE" if lock and connection.vendor == "postgresql" else ""
    rows = fetch_all(LEASED_SQL.format(model._meta.db_table, id_list(leases), suffix))
    return {pk for pk, lease in rows if UUID(str(lease)) == leases[pk]}


def finish_rows(model: type[models.Model], pks: Collection[int], state: str, attempts: int = 1, **values: Any) -> None:
    """Ends rows in this state, adds `attempts` to their attempts and sets these columns."""
    if not pks:
        return
    assignments = "".join(f", {name} = %s" for name in values)
    sql = FINISH_SQL.format(model._meta.db_table, now_plus(0), assignments, id_list(pks))
    execute(sql, [state, attempts, *values.values()])
