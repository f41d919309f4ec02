"""Deletes expired rows once a day. One worker at a time does it."""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db.models.functions import Now
from django.utils import timezone

from library_site.jobs.expiry import ExpiryStopped, delete_expired
from library_site.jobs.leases import select_due
from webhooks.models import Clearing

log = logging.getLogger(__name__)

EXPIRY_INTERVAL = timedelta(days=1)
# After this time another worker can take the lease. Two workers at a time do no harm.
EXPIRY_LEASE_TIME = timedelta(hours=1)


def delete_expired_if_due(is_stopping: Callable[[], bool]) -> None:
    """Deletes expired rows unless a worker did so in the last EXPIRY_INTERVAL, or another one holds the lease.

    If the worker stops before the end, another one can continue at once.
    """

    def check_stop() -> None:
        if is_stopping():
            raise ExpiryStopped

    if not lease_expiry():
        return
    try:
        counts = delete_expired(timezone.now(), check_stop)
    except ExpiryStopped:
        # One second in the past, so that another worker finds it due at once.
        schedule_expiry(-timedelta(seconds=1))
        return
    schedule_expiry(EXPIRY_INTERVAL)
    log.info("Cleared: %s", ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing")


def lease_expiry() -> bool:
    """Leases the deletion for EXPIRY_LEASE_TIME. Returns false if it is not due or another worker has the lease."""
    if Clearing.objects.filter(next_at__gt=Now()).exists():
        return False
    Clearing.objects.get_or_create(pk=1)
    return bool(select_due(Clearing).update(next_at=Now() + EXPIRY_LEASE_TIME))


def schedule_expiry(delay: timedelta) -> None:
    Clearing.objects.update(next_at=Now() + delay)
