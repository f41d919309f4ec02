"""When a row is due again after an attempt that failed."""

from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import F
from django.db.models.functions import Now

from library_site.jobs.leases import LeasedModel


class RetrySchedule(NamedTuple):
    """The seconds after each attempt that failed; the attempt behind the last delay is the last one.

    With `jitter`, a delay is longer or shorter by up to this part of it. Attempts count from 1.
    """

    delays: tuple[int, ...]
    jitter: float = 0

    @property
    def max_attempts(self) -> int:
        return len(self.delays) + 1

    def is_last(self, attempt: int) -> bool:
        return attempt >= self.max_attempts

    def get_delay(self, attempt: int, chance: float = 0.5) -> timedelta:
        """The delay after an attempt that is not the last; `chance` is from 0 to 1."""
        return timedelta(seconds=self.delays[attempt - 1] * (1 + self.jitter * (2 * chance - 1)))


# Of deliveries and received events.
EVENT_RETRIES = RetrySchedule((10, 60, 600, 3600), jitter=0.2)


def retry_row(model: type[LeasedModel], pk: int, delay: timedelta, **values: Any) -> None:
    """Adds an attempt to a row, and makes it due after the delay."""
    model._default_manager.filter(pk=pk).update(
        next_at=Now() + delay, lease=None, attempted=F("attempted") + 1, **values
    )
