"""Logs an outage of the database: one traceback, and then the number of failed requests."""

import logging
import time
from threading import Lock
from typing import Any

from django.db.backends.signals import connection_created
from django.dispatch import receiver

from library_site.db.errors import is_read_only

log = logging.getLogger(__name__)

# Seconds between two lines of an outage, and seconds without an error after which the next error is a new outage.
LINE_INTERVAL, OUTAGE_GAP = 10.0, 60.0


class OutageLog:
    """Counts the errors of this process.

    An outage ends with a new connection, unless the database is read-only, or after OUTAGE_GAP without an error.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.failures = 0
        self.is_read_only = False
        self.failed_at = self.logged_at = self.traced_at = float("-inf")

    def record(self, error: BaseException, now: float) -> None:
        with self.lock:
            if now - self.failed_at > OUTAGE_GAP:
                self.failures = 0
            self.failures, self.failed_at = self.failures + 1, now
            self.is_read_only = is_read_only(error.__cause__)
            is_first, is_traced = self.failures == 1, now - self.traced_at > OUTAGE_GAP
            has_line = is_first or now - self.logged_at > LINE_INTERVAL
            if has_line:
                self.logged_at = now
            if is_first and is_traced:
                self.traced_at = now
        if is_first:
            log.error("The database did not answer: %s", type(error).__name__, exc_info=error if is_traced else None)
        elif has_line:
            log.error("The database does not answer: %d requests failed.", self.failures)

    def end(self) -> None:
        with self.lock:
            if self.is_read_only:
                return
            failures, self.failures = self.failures, 0
        if failures:
            log.warning("The database answers again: %d requests failed.", failures)


outage_log = OutageLog()


def record_failure(error: BaseException) -> None:
    outage_log.record(error, time.monotonic())


@receiver(connection_created)
def end_outage(**_: Any) -> None:
    outage_log.end()
