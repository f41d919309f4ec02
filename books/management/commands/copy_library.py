"""Copies a whole library from another database into the configured one, which has none yet."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import CommandError
from django.core.management.sql import emit_post_migrate_signal
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.recorder import MigrationRecorder
from oauth2_provider.models import get_application_model

from books.files.deferred_indexes import defer_indexes
from books.files.progress import show_progress_bar
from library_site.db.checks import list_unapplied_migrations
from library_site.db.config import SQLITE, parse_database_url
from library_site.deployment.releases import VERSION, list_unknown_migrations
from library_site.management.checked_command import CheckedCommand
from oauth.models import Allowance
from webhooks.models import Clearing, DeliveryCount

Model = type[models.Model]
Rows = Sequence[tuple[Any, ...]]
SOURCE = "source"
BATCH_SIZE = 2000
# What `migrate` writes into a new database. The rows of the source replace it.
FILLED_BY_MIGRATE: set[Model] = {
    *(ContentType, Permission, Group, Group.permissions.through, get_application_model()),
    *(Allowance, Clearing, DeliveryCount),
}
# The last id that was given, also if its row is deleted: no id is given again.
READ_LAST_ID_SQL = {
    "postgresql": """SELECT pg_sequence_last_value(pg_get_serial_sequence('"{table}"', '{column}')::regclass)""",
    "sqlite": "SELECT max(seq) FROM sqlite_sequence WHERE name = '{table}'",
}
WRITE_LAST_ID_SQL = {
    "postgresql": ["""SELECT setval(pg_get_serial_sequence('"{table}"', '{column}'), {id})"""],
    "sqlite": [
        "DELETE FROM sqlite_sequence WHERE name = '{table}'",
        "INSERT INTO sqlite_sequence (name, seq) VALUES ('{table}', {id})",
    ],
}


class Command(CheckedCommand):
    help = (
        "Copies a whole library from another database into the empty one of DATABASE_URL, and compares both. All or"
        " nothing: what was interrupted is begun again by the same command."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="SOURCE_URL", help="its address, as DATABASE_URL takes it")

    def handle(self, *args: Any, source: str, **options: Any) -> None:
        began = time.monotonic()
        try:
            require_empty()
            with open_source(source) as database:
                require_this_release(database)
                call_command("migrate", verbosity=0)
                # Foreign keys of SQLite can only be turned off before a transaction.
                with connection.constraint_checks_disabled(), transaction.atomic(SOURCE), transaction.atomic():
                    count = self.copy_all(database)
        except (DatabaseError, KeyboardInterrupt) as error:
            reason = " ".join(str(error).split()) or "It was interrupted."
            raise CommandError(f"Nothing was copied; the same command begins again. {reason}") from error
        self.stdout.write(f"Copied and compared {count} rows in {time.monotonic() - began:.0f} seconds.")

    def copy_all(self, source: BaseDatabaseWrapper) -> int:
        """Returns the number of rows. Raises CommandError if the copy differs."""
        copied = list_models()
        for database in (source, connection):
            lock_tables(database, copied)
        require_empty()
        counts = {model: query(model, SOURCE).count() for model in copied}
        count = sum(counts.values())
        with defer_indexes():
            for _ in show_progress_bar(copy_and_compare(counts), "Copying, then comparing rows", 2 * count):
                pass
            connection.check_constraints()
        for model in copied:
            copy_last_id(model, source)
        ContentType.objects.clear_cache()
        # Makes what is derived from the rows.
        emit_post_migrate_signal(verbosity=0, interactive=False, db=DEFAULT_DB_ALIAS)
        if source.vendor == "postgresql":
            # The order of events is that of the transactions of their own PostgreSQL.
            call_command("after_restore", stdout=self.stdout)
        else:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
        return count


@contextmanager
def open_source(url: str) -> Iterator[BaseDatabaseWrapper]:
    """Raises CommandError if the address is wrong, or its file does not exist."""
    try:
        settings = parse_database_url(url)
    except ImproperlyConfigured as error:
        raise CommandError(str(error).replace("DATABASE_URL", "SOURCE_URL")) from error
    if settings["ENGINE"] == SQLITE and not Path(settings["NAME"]).exists():
        raise CommandError(f"There is no {settings['NAME']}.")
    # The library's own backend gives one turn a folder, where both databases may be.
    settings["ENGINE"] = settings["ENGINE"].replace(SQLITE, "django.db.backends.sqlite3")
    connections.settings[SOURCE] = connections.configure_settings({DEFAULT_DB_ALIAS: settings})[DEFAULT_DB_ALIAS]
    try:
        yield connections[SOURCE]
    finally:
        connections[SOURCE].close()
        del connections[SOURCE], connections.settings[SOURCE]


def require_this_release(source: BaseDatabaseWrapper) -> None:
    """Raises CommandError if the source has other tables than this code."""
    if later := list_unknown_migrations(MigrationRecorder(source).applied_migrations().keys()):
        raise CommandError(
            f"The source has {'.'.join(later[-1])}, which is not in {VERSION}: copy it with its release."
        )
    if missing := list_unapplied_migrations(source):
        raise CommandError(f"The source lacks {missing[0]}: bring it to {VERSION} by `deploy` before it is copied.")


def require_empty() -> None:
    """Raises CommandError if the target has more than `migrate` writes."""
    tables = connection.introspection.table_names()
    for model in list_models():
        table = model._meta.db_table
        if model not in FILLED_BY_MIGRATE and table in tables and query(model).exists():
            raise CommandError(f"The database of DATABASE_URL is not empty: {table} has rows. Take a new one.")


def list_models() -> list[Model]:
    return [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]


def query(model: Model, using: str = DEFAULT_DB_ALIAS) -> models.QuerySet[Any]:
    return model._base_manager.using(using)


def lock_tables(database: BaseDatabaseWrapper, locked: Sequence[Model]) -> None:
    """Others read, and wait if they write. A transaction of SQLite does the same by itself."""
    if database.vendor == "postgresql":
        with database.cursor() as cursor:
            tables = ", ".join(f'"{model._meta.db_table}"' for model in locked)
            cursor.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")


def copy_and_compare(counts: dict[Model, int]) -> Iterator[Rows]:
    """Yields rows that were copied, and later those that were read again. Raises CommandError if they differ."""
    for model, count in counts.items():
        _, copied = yield from sum_rows(model, map(prepare_writing(model), iter_batches(model, SOURCE)))
        found = yield from sum_rows(model, iter_batches(model, DEFAULT_DB_ALIAS))
        if found != (count, copied):
            raise CommandError(f"Nothing was copied: {model._meta.db_table} differs from its source.")


def sum_rows(model: Model, batches: Iterable[Rows]) -> Generator[Rows, None, tuple[int, int]]:
    """Yields the batches. Returns the number of rows, and a checksum that needs no order: the databases sort texts in
    different ways.
    """
    fields = enumerate(model._meta.local_concrete_fields)
    # Their values are equal and have different forms.
    places = [place for place, field in fields if isinstance(field, models.JSONField | models.BinaryField)]
    count = checksum = 0
    for rows in batches:
        count += len(rows)
        for row in rows:
            values = list(row)
            for place in places:
                values[place] = normalize(values[place])
            checksum += int.from_bytes(blake2b(repr(values).encode(), digest_size=16).digest())
        yield rows
    return count, checksum


def normalize(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytes | memoryview) else json.dumps(value, sort_keys=True)


def iter_batches(model: Model, using: str) -> Iterator[Rows]:
    """Yields all rows by their key, so that neither database keeps them in memory."""
    names = [field.attname for field in model._meta.local_concrete_fields]
    ordered = query(model, using).order_by("pk").values_list(*names)
    key = names.index(model._meta.pk.attname)
    rows = ordered[:BATCH_SIZE]
    while batch := list(rows):
        yield batch
        rows = ordered.filter(pk__gt=batch[-1][key])[:BATCH_SIZE]


def prepare_writing(model: Model) -> Callable[[Rows], Rows]:
    """Deletes what `migrate` and triggers wrote. Returns the function that writes rows as they are and returns them."""
    fields = model._meta.local_concrete_fields
    # Not `connection`, which looks itself up for each value.
    prepare = [partial(field.get_db_prep_save, connection=connections[DEFAULT_DB_ALIAS]) for field in fields]
    table, columns = f'"{model._meta.db_table}"', ", ".join(f'"{field.column}"' for field in fields)
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")

    def write(rows: Rows) -> Rows:
        adapted = [[to_column(value) for to_column, value in zip(prepare, row, strict=True)] for row in rows]
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                places = ", ".join(["%s"] * len(fields))
                cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", adapted)
            else:
                with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as writer:
                    for row in adapted:
                        writer.write_row(row)
        return rows

    return write


def copy_last_id(model: Model, source: BaseDatabaseWrapper) -> None:
    if not (field := model._meta.auto_field):
        return
    names = {"table": model._meta.db_table, "column": field.column}
    with source.cursor() as reader, connection.cursor() as writer:
        reader.execute(READ_LAST_ID_SQL[source.vendor].format(**names))
        [(last_id,)] = reader.fetchall()
        if last_id:
            for statement in WRITE_LAST_ID_SQL[connection.vendor]:
                writer.execute(statement.format(**names, id=last_id))
