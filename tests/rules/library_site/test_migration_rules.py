"""An upgrade lets requests pass, and the older code runs on the new tables."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED, Q
from pytest_django import Settings

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


LOADER = MigrationLoader(None)


def build_migration(*operations: Any) -> migrations.Migration:
    kind = type("Migration", (migrations.Migration,), {"operations": list(operations)})
    built: migrations.Migration = kind("0024_next", "books")
    return built


def test_no_migration_stops_a_running_library(settings: Settings) -> None:
    ours = {key: migration for key, migration in LOADER.disk_migrations.items() if key[0] in settings.OWN_APPS}
    found = {
        key: find_problems(migration, partial(LOADER.project_state, key, at_end=False))
        for key, migration in ours.items()
    }
    assert {key: sentences for key, sentences in found.items() if sentences} == {}
    assert {app for app, _ in ours} == {"books", "oauth", "webhooks"}


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (migrations.AddIndex("book", models.Index("title", name="by_title")), "until the index is built"),
        (
            migrations.AddConstraint("book", models.CheckConstraint(condition=Q(year__gt=0), name="x")),
            "until all rows are checked",
        ),
        (migrations.AlterField("book", "title", models.TextField()), "can write the table anew"),
        (migrations.RemoveField("book", "title"), "still reads the column"),
        (migrations.RenameField("book", "title", "name"), "still has the old name"),
        (migrations.DeleteModel("book"), "still reads the table"),
        (migrations.RunSQL("UPDATE books_book SET year = 0"), "nobody knows what it locks"),
        (migrations.AddField("book", "shelf", models.TextField(default="")), "inserts rows without the column"),
        (migrations.AddField("book", "shelf", models.IntegerField(null=True, db_index=True)), "index is built"),
    ],
)
def test_an_operation_that_holds_others_is_found(operation: Any, reason: str) -> None:
    hidden = migrations.SeparateDatabaseAndState(database_operations=[operation])
    for migration in (build_migration(operation), build_migration(hidden)):
        [problem] = find_problems(migration, LOADER.project_state)
        assert reason in problem
