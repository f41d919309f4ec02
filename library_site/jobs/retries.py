"""When deliveries and received events are due again after an attempt that failed."""

from datetime import timedelta
from typing import Any

from django.db.models import F, Model
from django.db.models.functions import Now

# Seconds after the first to the fourth attempt; the fifth is the last.
RETRY_DELAYS = (10, 60, 600, 3600)
MAX_RETRY_DELAY = timedelta(seconds=RETRY_DELAYS[-1])


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
