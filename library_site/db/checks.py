"""System checks of the database (`manage.py check`, `serve` and `deliver_webhooks`)."""

import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import OperationalError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

from library_site.db.migration_state import list_partial_migrations

# Without the connections that are reserved for superusers. The database and the role can have lower limits.
MAX_CONNECTIONS_SQL = """
SELECT least(
    current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
    nullif(datconnlimit, -1), nullif(rolconnlimit, -1)
) FROM pg_database CROSS JOIN pg_roles WHERE datname = current_database() AND rolname = current_user
"""


@checks.register
def check_database_mode(app_configs: Any, **options: Any) -> Iterator[checks.CheckMessage]:
    """Allows access of the group: web processes and workers can run as different users."""
    path = Path(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or not path.exists():
        return
    if not path.stat().st_mode & stat.S_IRWXO or not path.absolute().parent.stat().st_mode & stat.S_IXOTH:
        return
    yield checks.Warning(
        f"Every user of this machine can access {path}: it holds sessions and hashes of passwords.",
        hint=f"chmod o= {path}*",
        id="library_site.W005",
    )


@checks.register
def check_readiness(app_configs: Any, **options: Any) -> list[checks.CheckMessage]:
    """Runs only for the library's own processes: other commands create the database and its tables."""
    if settings.LIBRARY_PROCESS == "command":
        return []
    # A new connection, because the process would keep the other one open until it ends.
    with closing(connection.copy()) as database:
        try:
            return [*iter_unapplied_migrations(database), *iter_missing_connections(database)]
        except OperationalError as error:
            # Only a warning: the library sends 503 responses until the database answers, and needs no restart.
            warning = checks.Warning(
                f"The database of DATABASE_URL does not answer: {' '.join(str(error).split())}",
                hint="Until it does, requests get a 503.",
                id="library_site.W013",
            )
            return [warning]


def iter_unapplied_migrations(database: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    if names := list_unapplied_migrations(database):
        yield checks.Error(
            f"{len(names)} migrations of the database are not applied, the first of them {names[0]}.",
            hint="`manage.py deploy` applies them.",
            id="library_site.E003",
        )


def list_unapplied_migrations(database: BaseDatabaseWrapper) -> list[str]:
    """Returns the names of migrations, such as `sessions.0001_initial`, in their order."""
    executor = MigrationExecutor(database)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    planned = [(migration.app_label, migration.name) for migration, _ in plan]
    partial = list_partial_migrations({*executor.loader.applied_migrations})
    return [".".join(key) for key in (*partial, *planned)]


def iter_missing_connections(database: BaseDatabaseWrapper) -> Iterator[checks.CheckMessage]:
    if database.vendor == "sqlite":
        return
    with database.cursor() as cursor:
        cursor.execute(MAX_CONNECTIONS_SQL)
        available = int(cursor.fetchone()[0])
    needed = settings.WEB_CONCURRENCY * settings.WEB_THREADS
    if needed > available:
        yield checks.Warning(
            f"WEB_CONCURRENCY × WEB_THREADS needs {needed} connections, and PostgreSQL takes {available}: requests"
            " beyond them get a 503.",
            hint="Lower WEB_THREADS, raise max_connections, or put PgBouncer between.",
            id="library_site.W014",
        )
