"""Describes a connection to libpq and to people."""

import sys
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

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
