"""How long a migration makes others wait, which is said before it runs.

On PostgreSQL it holds nobody for longer than a moment (`library_site.db.online_ddl`). SQLite writes a table anew for
most changes of it, and builds an index at once: all writers of the library wait for the end.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

# Of a table of 300,000 books, on two cores: written anew in 7.7 s, and an index built in 0.3.
REWRITE_SECONDS, INDEX_SECONDS = 7.7 / 300_000, 0.3 / 300_000
SECONDS_OF_A_ROW: dict[type[Operation], float] = {
    operations.AddField: REWRITE_SECONDS,
    operations.RemoveField: REWRITE_SECONDS,
    operations.AlterField: REWRITE_SECONDS,
    operations.AddConstraint: REWRITE_SECONDS,
    operations.RemoveConstraint: REWRITE_SECONDS,
    operations.AddIndex: INDEX_SECONDS,
}


def estimate_seconds(migration: Migration, state: ProjectState, database: BaseDatabaseWrapper) -> float:
    """Returns for how many seconds writers wait; `state` has the models before the migration."""
    if database.vendor != "sqlite":
        return 0
    seconds = 0.0
    for operation in iter_database_operations(migration.operations):
        model = state.models.get((migration.app_label, getattr(operation, "model_name_lower", "")))
        if type(operation) in SECONDS_OF_A_ROW and model:
            table = state.apps.get_model(migration.app_label, model.name)._meta.db_table
            seconds += count_rows(database, table) * SECONDS_OF_A_ROW[type(operation)]
    return seconds


def iter_database_operations(listed: Iterable[Any]) -> Iterator[Operation]:
    """Those that change the database: what is in `state_operations` does not."""
    for operation in listed:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from iter_database_operations(operation.database_operations)
        else:
            yield operation


def count_rows(database: BaseDatabaseWrapper, table: str) -> int:
    if table not in database.introspection.table_names():
        return 0
    with database.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {database.ops.quote_name(table)}")  # noqa: S608  # a table of ours
        return int(cursor.fetchone()[0])
