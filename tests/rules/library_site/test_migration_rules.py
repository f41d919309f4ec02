"""An upgrade lets requests pass, and the older code runs on the new tables."""

from functools import partial
from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models import Q
from pytest_django import Settings

from tests.support.migration_rules import find_problems

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


def test_an_operation_that_holds_nobody_is_allowed() -> None:
    assert not find_problems(
        build_migration(
            migrations.CreateModel("Shelf", [("id", models.BigAutoField(primary_key=True))]),
            migrations.AddIndex("shelf", models.Index("id", name="by_id")),
            migrations.AddField("book", "shelf", models.TextField(db_default="")),
            migrations.AddField("book", "lent_at", models.DateTimeField(null=True)),
            migrations.SeparateDatabaseAndState(state_operations=[migrations.RemoveField("book", "title")]),
            migrations.AlterField("book", "title", label_title("a name for people")),
            migrations.RunPython(migrations.RunPython.noop),
        ),
        LOADER.project_state,
    )


def label_title(label: str) -> Any:
    """The column of the title with another name for people."""
    title = LOADER.project_state().models["books", "book"].fields["title"].clone()
    title.verbose_name = title._verbose_name = label
    return title
