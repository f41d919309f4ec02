"""Django's `migrate`, which lets requests pass and runs once at a time."""

import time
from typing import Any

from django.core.management.base import CommandError, OutputWrapper
from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from django.db.migrations.recorder import MigrationRecorder
from psycopg import errors

from library_site.db.migration_state import list_partial_migrations
from library_site.db.online_ddl import DDL_RETRY_INTERVAL, LOCK_TIMEOUT
from library_site.management.checked_command import CheckedCommand

# Any number that no other program uses in this database.
ADVISORY_LOCK = 5_271_009


class Command(CheckedCommand, migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        self.database = connections[options["database"]]
        if self.database.vendor != "postgresql":
            require_no_partial_migration(self.database)
            super().handle(*args, **options)
            return
        while not self.try_migrate(*args, **options):
            self.stdout.write("Others use a table for longer. Trying again.")
            time.sleep(DDL_RETRY_INTERVAL)

    def try_migrate(self, *args: Any, **options: Any) -> bool:
        """Returns false if a lock was not free in time. The migrations before that one are applied."""
        take_advisory_lock(self.database, self.stdout)
        try:
            # Only with the lock: another `migrate` records replaced migrations one by one.
            require_no_partial_migration(self.database)
            super().handle(*args, **options)
        except OperationalError as error:
            if isinstance(error.__cause__, errors.LockNotAvailable):
                return False
            raise
        finally:
            # This ends the advisory lock, the timeout, and the transaction that Django leaves open if the last
            # statements of a migration fail.
            self.database.close()
            self.database.connect()
        return True

    def migration_progress_callback(self, action: str, migration: Migration | None = None, fake: bool = False) -> None:
        """Only a migration in a single transaction can be retried. The others handle their locks themselves."""
        super().migration_progress_callback(action, migration, fake)
        if self.database.vendor == "postgresql" and migration:
            starts_transaction = action in ("apply_start", "unapply_start") and migration.atomic
            set_lock_timeout(self.database, LOCK_TIMEOUT if starts_transaction else "0")


def require_no_partial_migration(database: BaseDatabaseWrapper) -> None:
    """Raises CommandError if an upgrade stopped among migrations that this release has as a single one."""
    partial = list_partial_migrations({*MigrationRecorder(database).applied_migrations()})
    if partial:
        raise CommandError(
            f"The database has only some of the migrations that {'.'.join(partial[0])} replaces. First upgrade it with"
            " the last release that has them (docs/operations/install.md, Upgrade and rollback)."
        )


def take_advisory_lock(database: BaseDatabaseWrapper, stdout: OutputWrapper) -> None:
    """Waits for a `migrate` of another machine. The connection has the lock until it is closed.

    It polls, because a waiting statement would block CREATE INDEX CONCURRENTLY.
    """
    is_waiting = False
    while not try_advisory_lock(database):
        if not is_waiting:
            stdout.write("Another migrate changes this database. Waiting for it.")
        is_waiting = True
        time.sleep(DDL_RETRY_INTERVAL)


def try_advisory_lock(database: BaseDatabaseWrapper) -> bool:
    """Takes the lock for as long as the connection is open. Returns false if another process has it."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_LOCK])
        return bool(cursor.fetchone()[0])


def set_lock_timeout(database: BaseDatabaseWrapper, timeout: str) -> None:
    with database.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{timeout}'")
