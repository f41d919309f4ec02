"""Describes a connection to libpq and to people."""

import sys
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from library_site.json_lines import write_note

# Django's connection parameters that belong to Django or psycopg, not to libpq.
DJANGO_ONLY_PARAMETERS = {"context", "cursor_factory", "prepare_threshold"}


def get_libpq_parameters(database: BaseDatabaseWrapper) -> dict[str, Any]:
    """Returns the parameters of Django's connection to PostgreSQL, for other clients."""
    parameters = database.get_connection_params()
    return {name: value for name, value in parameters.items() if name not in DJANGO_ONLY_PARAMETERS}


def name_database_once(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Receives `connection_created` in commands (manage.py). Prints the database that the command uses."""
    connection_created.disconnect(name_database_once)
    write_note(sys.stderr, f"Database: {describe_database(connection)}")


def describe_database(connection: BaseDatabaseWrapper) -> str:
    """Returns the server of this connection, also if DATABASE_URL has several, without the password."""
    if connection.vendor == "sqlite":
        return f"SQLite, {connection.settings_dict['NAME']}"
    info = connection.connection.info
    return f"PostgreSQL, {info.dbname} at {info.host}:{info.port} as {info.user}"
