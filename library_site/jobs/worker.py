"""The loop of a worker. It also handles a database that fails."""

import logging
import signal
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import NamedTuple, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

from library_site.db.postgresql.lost_connections import close_lost_connection

log = logging.getLogger(__name__)
Result = TypeVar("Result")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# The errors of a database that is down or read-only, such as a replica before it is promoted.
CONNECTION_ERRORS = (InterfaceError, InternalError, OperationalError)
# Seconds before the next try after a database error.
RECONNECT_DELAY = 1.0


class Queue(NamedTuple):
    """`process` does some of what is due, and returns whether anything was. `interval` is in seconds."""

    process: Callable[[Event], object]
    interval: float


def run_queue(queue: Queue, stop: Event, once: bool) -> None:
    """Runs until `stop` is set; with `once`, until nothing is due."""
    while not stop.is_set():
        try:
            was_due = call_reconnecting(partial(queue.process, stop))
        except CONNECTION_ERRORS:
            stop.wait(RECONNECT_DELAY)
            continue
        if not was_due:
            if once:
                return
            stop.wait(queue.interval)


def call_reconnecting(function: Callable[[], Result]) -> Result:
    """Closes a broken connection, so that the next call opens a new one. Raises CONNECTION_ERRORS."""
    close_lost_connection()
    try:
        return function()
    except CONNECTION_ERRORS as error:
        drop_connection(error)
        raise


def drop_connection(error: Exception) -> None:
    """Closes the connection of this thread, which raised the error."""
    log.warning("The database did not answer: %s", type(error).__name__)
    connection.close()
