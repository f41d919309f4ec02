"""How workers handle a database that fails, and the signals that stop workers."""

import logging
import signal
from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection

from library_site.db.postgresql.lost_connections import close_lost_connection

log = logging.getLogger(__name__)
Result = TypeVar("Result")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# The errors of a database that is down or read-only, such as a replica before it is promoted.
CONNECTION_ERRORS = (InterfaceError, InternalError, OperationalError)
# Seconds before the next try after a database error.
RECONNECT_DELAY = 1.0


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
