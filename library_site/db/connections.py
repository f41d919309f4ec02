"""Closes persistent connections that the database server has closed, and describes a connection to libpq."""

import select
from typing import Any

from django.core.signals import request_started
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.dispatch import receiver

# Those of Django's connection parameters that are Django's own or psycopg's, and not libpq's.
DJANGO_ONLY_PARAMETERS = {"context", "cursor_factory", "prepare_threshold"}


def get_libpq_parameters(database: BaseDatabaseWrapper) -> dict[str, Any]:
    """The parameters with which Django connects to PostgreSQL, for other clients of it."""
    parameters = database.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in DJANGO_ONLY_PARAMETERS}


@receiver(request_started)
def close_lost_connection(**_: Any) -> None:
    """Closes the connection if PostgreSQL or psycopg has closed it, so that no request fails.

    A query to test the connection would cost a round trip.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    is_idle = connection.vendor == "postgresql" and connection.connection is not None and not connection.in_atomic_block
    if is_idle and (connection.connection.closed or is_readable(connection.connection.fileno())):
        connection.close()


def is_readable(socket: int) -> bool:
    """Between two statements, a readable socket means that the server has closed the connection."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))
