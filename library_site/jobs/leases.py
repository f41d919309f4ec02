"""Queues in the database. Each row of a LeasedModel is processed by one worker at a time, on any number of machines.

A row is due at `next_at`. A worker that leases it moves `next_at` to the end of the lease, so the rows of a
worker that died become due again. All times are the database's.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

from django.db import models
from django.db.models import F
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from library_site.db.sql import Row, fetch_all, id_list, now_plus

# At least twice the time that a worker needs to finish a row or renew its lease.
LEASE_TIME = timedelta(seconds=30)
# If more workers than this die during a lease of a row, the row is not leased again.
MAX_LOST_WORKERS = 10
POISON_TEXT = gettext_noop("Given up: more than %(count)s workers ended during it.")
POISONED_REASON = POISON_TEXT % {"count": MAX_LOST_WORKERS}
LEASE_SQL = (
    "UPDATE {} SET next_at = {}, lease = %s, claimed = claimed + 1 WHERE id IN ({}) AND next_at <= {} RETURNING {}"
)


class LeasedModel(models.Model):
    """A row that one worker at a time leases. `next_at` is when it is due and, during a lease, when the lease ends."""

    # The database's clock, which all workers share.
    next_at = models.DateTimeField(_("next at"), null=True, db_default=Now())
    lease = models.UUIDField(null=True)
    attempted = models.PositiveSmallIntegerField(_("attempted"), default=0, db_default=0)
    # The number of leases: more than `attempted` if workers died.
    claimed = models.PositiveSmallIntegerField(default=0, db_default=0)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        abstract = True


T = TypeVar("T", bound=LeasedModel)
Due = TypeVar("Due", bound=models.Model)


class LeaseLost(Exception):
    """The row is finished, or another worker has leased it."""


class Claim(NamedTuple):
    """The leased rows, and the rows that killed too many workers: the caller finishes these in the same transaction."""

    lease: UUID
    pks: list[int]
    poisoned_pks: list[int]


def select_due(model: type[Due]) -> models.QuerySet[Due]:
    """Selects the due rows of a model with `next_at`."""
    return model._default_manager.filter(next_at__lte=Now())


def has_due(model: type[LeasedModel]) -> bool:
    """Runs without a transaction: on SQLite, a transaction would block other writers."""
    return select_due(model).exists()


def claim_due(model: type[LeasedModel], limit: int) -> Claim:
    """Leases the rows that have been due longest. Needs a transaction."""
    due = select_due(model).order_by("next_at", "pk").select_for_update(skip_locked=True)
    lease, rows = lease_rows(model, due.values_list("pk", flat=True)[:limit], ["id", "attempted", "claimed"])
    poisoned_pks = [pk for pk, attempted, claimed in rows if is_poisoned(attempted, claimed)]
    return Claim(lease, [pk for pk, *_ in rows if pk not in poisoned_pks], poisoned_pks)


def lease_rows(model: type[LeasedModel], pks: Collection[int], columns: Sequence[str]) -> tuple[UUID, list[Row]]:
    """Leases the due rows among these for LEASE_TIME. Returns the lease, and these columns of the leased rows."""
    lease = uuid4()
    sql = LEASE_SQL.format(
        model._meta.db_table, now_plus(LEASE_TIME.seconds), id_list(pks), now_plus(0), ", ".join(columns)
    )
    return lease, fetch_all(sql, [lease.hex])


def is_poisoned(attempted: int, claimed: int) -> bool:
    """Whether more than MAX_LOST_WORKERS workers died during a lease of the row."""
    return claimed > attempted + MAX_LOST_WORKERS


def select_leased(model: type[LeasedModel], leases: Mapping[int, UUID], lock: bool) -> set[int]:
    """Selects the ids of rows that still have their lease; `lock` keeps it until the transaction ends."""
    rows = model._default_manager.filter(pk__in=leases)
    rows = rows.select_for_update() if lock else rows
    return {pk for pk, lease in rows.values_list("pk", "lease") if lease == leases[pk]}


def lock_leased(row: LeasedModel) -> bool:
    """Returns false if another worker has leased the row since it was read. Otherwise locks the row: no other worker
    can lease it before the transaction ends, even if the lease expires.
    """
    return bool(filter_leased(row).select_for_update().values_list("pk"))


def get_leased(row: T) -> T:
    """Returns the current row. Raises LeaseLost."""
    current = filter_leased(row).first()
    if current is None:
        raise LeaseLost
    return current


def renew_lease(row: LeasedModel) -> None:
    """Raises LeaseLost."""
    if not filter_leased(row).update(next_at=Now() + LEASE_TIME):
        raise LeaseLost


def release_row(row: LeasedModel) -> None:
    """Ends the lease if the worker still has it, so that another worker can lease the row at once."""
    filter_leased(row).update(lease=None, next_at=Now())


def filter_leased(row: T) -> models.QuerySet[T]:
    """Selects the row if it still has the lease that it was read with."""
    return type(row)._default_manager.filter(pk=row.pk, lease=row.lease, lease__isnull=False)


def finish_rows(model: type[LeasedModel], pks: Collection[int], state: str, attempts: int = 1, **values: Any) -> None:
    """Finishes rows in this state, adds `attempts` to their attempts and sets these columns."""
    values |= {"state": state, "next_at": None, "lease": None, "finished_at": Now()}
    model._default_manager.filter(pk__in=pks).update(attempted=F("attempted") + attempts, **values)
