"""Closes connections that the server has closed or that cannot write, so that no request fails."""

import select
from typing import Any

from django.core.signals import request_started
from django.dispatch import receiver
from psycopg.pq.abc import PGconn

from library_site.db.sql import thread_connection

# The server reports them by itself, PostgreSQL from version 14 on; a pooler may report none.
READ_ONLY_PARAMETERS = (b"in_hot_standby", b"default_transaction_read_only")


@receiver(request_started)
def close_lost_connection(**_: Any) -> None:
    """Closes the connection of this thread if PostgreSQL or psycopg has closed it, or if its session is read-only.

    An address that led to a standby can lead to the primary now. A query to test the connection would cost a round
    trip.
    """
    database = thread_connection.database
    is_idle = database.vendor == "postgresql" and database.connection is not None and not database.in_atomic_block
    if is_idle and (
        database.connection.closed
        or is_readable(database.connection.fileno())
        or is_read_only_session(database.connection.pgconn)
    ):
        database.close()


def is_readable(socket: int) -> bool:
    """Between two statements, a readable socket means that the server has closed the connection."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def is_read_only_session(libpq: PGconn) -> bool:
    return any(libpq.parameter_status(name) == b"on" for name in READ_ONLY_PARAMETERS)
