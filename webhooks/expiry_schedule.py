"""Deletes expired rows once a day. One worker does it for all."""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db.models.functions import Now
from django.utils import timezone

from library_site.jobs.expiry import PurgeStopped, purge_all
from webhooks.models import Clearing

log = logging.getLogger(__name__)

CLEARING_INTERVAL = timedelta(days=1)
# After this time another worker takes over. Two at a time do no harm.
CLEARING_LEASE = timedelta(hours=1)
CLEARING_PK = 1


def clear_if_due(is_stopping: Callable[[], bool]) -> None:
    """Deletes expired rows unless a worker has done so in the last CLEARING_INTERVAL, or is doing so.

    If the worker stops meanwhile, another one goes on at once.
    """

    def check_stop() -> None:
        if is_stopping():
            raise PurgeStopped

    if not lease_clearing():
        return
    try:
        counts = purge_all(timezone.now(), check_stop)
    except PurgeStopped:
        # Its own millisecond would be over only with the next one.
        schedule_clearing(-timedelta(seconds=1))
        return
    schedule_clearing(CLEARING_INTERVAL)
    log.info("Cleared: %s", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing")


def lease_clearing() -> bool:
    """Whether a clearing is due that no other worker does. Then it is leased for CLEARING_LEASE."""
    if Clearing.objects.filter(next_at__gt=Now()).exists():
        return False
    Clearing.objects.get_or_create(pk=CLEARING_PK)
    return bool(Clearing.objects.filter(next_at__lte=Now()).update(next_at=Now() + CLEARING_LEASE))


def schedule_clearing(delay: timedelta) -> None:
    Clearing.objects.update(next_at=Now() + delay)
