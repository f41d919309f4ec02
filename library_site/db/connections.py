"""Closes connections that the database server has closed, and describes a connection to libpq and to people."""

import select
import sys
from typing import Any

from django.core.signals import request_started
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver

# Those of Django's connection parameters that are Django's own or psycopg's, and not libpq's.
DJANGO_ONLY_PARAMETERS = {"context", "cursor_factory", "prepare_threshold"}


def get_libpq_parameters(database: BaseDatabaseWrapper) -> dict[str, Any]:
    """The parameters with which Django connects to PostgreSQL, for other clients of it."""
    parameters = database.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in DJANGO_ONLY_PARAMETERS}


def name_database_once(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Receives `connection_created` in commands (manage.py): says on which database the command acts."""
    connection_created.disconnect(name_database_once)
    sys.stderr.write(f"Database: {describe_database(connection)}\n")


def describe_database(connection: BaseDatabaseWrapper) -> str:
    """Of several servers in DATABASE_URL it names the one that is connected. It has no password."""
    if connection.vendor == "sqlite":
        return f"SQLite, {connection.settings_dict['NAME']}"
    info = connection.connection.info
    return f"PostgreSQL, {info.dbname} at {info.host}:{info.port} as {info.user}"


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
