"""Closes connections that the database server has closed, so that no request fails."""

import select
from typing import Any

from django.core.signals import request_started
from django.dispatch import receiver

from library_site.db.sql import thread_connection


@receiver(request_started)
def close_lost_connection(**_: Any) -> None:
    """Closes the connection of this thread if PostgreSQL or psycopg has closed it.

    A query to test the connection would cost a round trip.
    """
    database = thread_connection.database
    is_idle = database.vendor == "postgresql" and database.connection is not None and not database.in_atomic_block
    if is_idle and (database.connection.closed or is_readable(database.connection.fileno())):
        database.close()


def is_readable(socket: int) -> bool:
    """Between two statements, a readable socket means that the server has closed the connection."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
