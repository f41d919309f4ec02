"""Finds operations of a migration that stop a running library: its requests, or its older code."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from django.db.migrations import Migration, operations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

from library_site.db.online_ddl import AllowNull

ONLINE = "library_site.db.online_ddl does it without"
# What is said of an operation on a table that is in use.
REASONS: dict[type[Operation], str] = {
    operations.AddIndex: f"holds writers until the index is built; {ONLINE}",
    operations.AddConstraint: f"holds everybody until all rows are checked; {ONLINE}",
    operations.AlterField: f"can write the table anew; {ONLINE}",
    operations.AlterUniqueTogether: f"holds writers until the index is built; {ONLINE}",
    operations.RemoveField: "the running code still reads the column",
    operations.RenameField: "the running code still has the old name",
    operations.RenameModel: "the running code still has the old name",
    operations.DeleteModel: "the running code still reads the table",
    operations.AlterModelTable: "the running code still has the old name",
    operations.RunSQL: f"nobody knows what it locks; {ONLINE}",
}


def find_problems(migration: Migration, read_state: Callable[[], ProjectState]) -> list[str]:
    """Returns a sentence for each operation on a table that older code uses.

    `read_state` returns the models before the migration.
    """
    new_models = {
        operation.name_lower for operation in migration.operations if isinstance(operation, operations.CreateModel)
    }
    return [
        f"{migration.app_label}.{migration.name}: {operation.describe()}: {reason}"
        for operation in iter_database_operations(migration.operations)
        if get_model_name(operation) not in new_models
        and (reason := find_reason(operation))
        and not (isinstance(operation, operations.AlterField) and is_label(operation, migration, read_state()))
    ]


def get_model_name(operation: Any) -> str | None:
    name = getattr(operation, "model_name", None) or getattr(operation, "name", None)
    return name.lower() if name else None


def is_label(operation: operations.AlterField, migration: Migration, state: ProjectState) -> bool:
    """Whether the database does not see the change: of a name for people, of help texts, of choices."""
    old_model = state.models.get((migration.app_label, operation.model_name_lower))
    # The migration itself may have renamed it.
    return old_model is not None and describe_column(old_model.fields[operation.name]) == describe_column(
        operation.field
    )


def describe_column(field: Any) -> tuple[Any, ...]:
    _, path, arguments, options = field.deconstruct()
    return path, arguments, {name: value for name, value in options.items() if name not in field.non_db_attrs}


def find_reason(operation: Operation) -> str | None:
    if isinstance(operation, AllowNull):
        return None
    if isinstance(operation, operations.AddField):
        return find_reason_of_column(operation.field)
    return next((reason for kind, reason in REASONS.items() if isinstance(operation, kind)), None)


def find_reason_of_column(field: Any) -> str | None:
    if not field.null and field.db_default is NOT_PROVIDED:
        return "the running code inserts rows without the column: it needs null or a db_default"
    if (field.db_index or field.unique) and field.remote_field is None:
        return f"holds writers until the index is built; {ONLINE}"
    return None


def iter_database_operations(listed: Iterable[Any]) -> Iterator[Operation]:
    """Those that change the database: what is in `state_operations` does not."""
    for operation in listed:
        if isinstance(operation, operations.SeparateDatabaseAndState):
            yield from iter_database_operations(operation.database_operations)
        else:
            yield operation
