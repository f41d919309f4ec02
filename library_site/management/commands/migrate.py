"""Django's `migrate`, which lets requests pass and runs once at a time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.commands import migrate
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration
from psycopg import errors

from library_site.db.online_ddl import LOCK_TIMEOUT, RETRY_INTERVAL

# Any number that no other program uses in this database.
ADVISORY_LOCK = 5_271_009


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        self.database = connections[options["database"]]
        if self.database.vendor != "postgresql":
            super().handle(*args, **options)
            return
        with self.hold_advisory_lock():
            while not self.try_migrate(*args, **options):
                self.stdout.write("Others use a table for longer. Trying again.")
                time.sleep(RETRY_INTERVAL)

    @contextmanager
    def hold_advisory_lock(self) -> Iterator[None]:
        """Waits for a `migrate` of another machine.

        It asks again and again: a statement that waits would hold up an index that is built CONCURRENTLY.
        """
        is_waiting = False
        while not fetch_value(self.database, "SELECT pg_try_advisory_lock(%s)"):
            if not is_waiting:
                self.stdout.write("Another migrate changes this database. Waiting for it.")
            is_waiting = True
            time.sleep(RETRY_INTERVAL)
        try:
            yield
        finally:
            fetch_value(self.database, "SELECT pg_advisory_unlock(%s)")

    def try_migrate(self, *args: Any, **options: Any) -> bool:
        """Returns false if a lock was not free in time. The migrations before this one are applied."""
        try:
            super().handle(*args, **options)
        except OperationalError as error:
            if isinstance(error.__cause__, errors.LockNotAvailable):
                return False
            raise
        finally:
            set_lock_timeout(self.database, "0")
        return True

    def migration_progress_callback(self, action: str, migration: Migration | None = None, fake: bool = False) -> None:
        """A migration in one transaction can be tried again. The others see to their locks themselves."""
        super().migration_progress_callback(action, migration, fake)
        if self.database.vendor == "postgresql" and migration:
            starts_transaction = action in ("apply_start", "unapply_start") and migration.atomic
            set_lock_timeout(self.database, LOCK_TIMEOUT if starts_transaction else "0")


def fetch_value(database: BaseDatabaseWrapper, statement: str) -> Any:
    with database.cursor() as cursor:
        cursor.execute(statement, [ADVISORY_LOCK])
        return cursor.fetchone()[0]


def set_lock_timeout(database: BaseDatabaseWrapper, timeout: str) -> None:
    with database.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{timeout}'")
