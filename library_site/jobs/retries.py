"""The delay of the next attempt after a failed one."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import F
from django.db.models.functions import Now

from library_site.jobs.leases import LeasedModel


class RetrySchedule(NamedTuple):
    """The delay in seconds after each failed attempt. The attempt after the last delay is the last one.

    `jitter` is the fraction by which a delay varies in both directions. Attempts count from 1.
    """

    delays: tuple[float, ...]
    jitter: float = 0

    @property
    def max_attempts(self) -> int:
        return len(self.delays) + 1

    def is_last(self, attempt: int) -> bool:
        return attempt >= self.max_attempts

    def get_delay(self, attempt: int, chance: float = 0.5) -> timedelta:
        """Returns the delay after an attempt that is not the last; `chance` is from 0 to 1."""
        return timedelta(seconds=self.delays[attempt - 1] * (1 + self.jitter * (2 * chance - 1)))


# For deliveries and received events.
EVENT_RETRIES = RetrySchedule((10, 60, 600, 3600), jitter=0.2)


def retry_rows(model: type[LeasedModel], pks: Collection[int], delay: timedelta, **values: Any) -> None:
    """Counts an attempt, and makes the rows due after the delay."""
    model._default_manager.filter(pk__in=pks).update(
        next_at=Now() + delay, lease=None, attempted=F("attempted") + 1, **values
    )
