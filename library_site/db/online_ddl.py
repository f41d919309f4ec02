"""Changes tables and indexes of PostgreSQL while requests use them."""

import time
from collections.abc import Iterable
from typing import Any

from django.db import OperationalError, migrations, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import errors

# Requests wait ten times as long (DATABASE_LOCK_TIMEOUT).
LOCK_TIMEOUT = "200ms"
DDL_RETRY_INTERVAL = 1.0


def execute_with_short_locks(database: BaseDatabaseWrapper, statements: Iterable[str]) -> None:
    """Runs statements in one transaction. Each must be fast once it has the lock on its table.

    While a statement waits for its lock, all later statements wait too. So it soon gives up, lets them run, and tries
    again until it gets the lock.
    """
    statements = list(statements)
    while not try_execute(database, statements):
        time.sleep(DDL_RETRY_INTERVAL)


def try_execute(database: BaseDatabaseWrapper, statements: Iterable[str]) -> bool:
    """Returns false if a lock was not free in time. Then nothing has changed."""
    try:
        with transaction.atomic(using=database.alias), database.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            for statement in statements:
                cursor.execute(statement)
    except OperationalError as error:
        if isinstance(error.__cause__, errors.LockNotAvailable):
            return False
        raise
    return True


class AllowNull(migrations.AlterField):
    """Lets a column be null. On PostgreSQL, Django would also recreate a foreign key and lock the other table."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        table, column = model._meta.db_table, model._meta.get_field(self.name).column
        statement = f'ALTER TABLE "{table}" ALTER COLUMN "{column}" DROP NOT NULL'
        execute_with_short_locks(schema_editor.connection, [statement])
