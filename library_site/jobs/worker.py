"""The loop of a worker. It also handles a database that fails."""

import logging
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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


def run_queues(queues: Sequence[Queue], once: bool) -> None:
    """Runs until SIGTERM or SIGINT; with `once`, until nothing is due. The first queue runs in this thread, the
    others in threads of their own, because a mail server or a handler can be slow. If one raises, all stop.
    """
    first, *others = queues
    stop = Event()
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    with ThreadPoolExecutor(len(queues)) as executor:
        futures = [executor.submit(run_in_thread, queue, stop, once) for queue in others]
        try:
            run_queue(first, stop, once)
        except BaseException:
            stop.set()
            raise
    for future in futures:
        future.result()


def run_in_thread(queue: Queue, stop: Event, once: bool) -> None:
    try:
        run_queue(queue, stop, once)
    except BaseException:
        stop.set()
        raise
    finally:
        connection.close()


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
