"""An index of the operations of an actor, for the list of a person's own.

On PostgreSQL it is built while others write. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models

NAME = "operation_actor"


def create_index(apps: Any, schema_editor: Any) -> None:
    concurrently = ""
    if schema_editor.connection.vendor == "postgresql":
        concurrently = "CONCURRENTLY"
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
    schema_editor.execute(f"CREATE INDEX {concurrently} {NAME} ON books_operation (actor_id, id)")


def drop_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0001_squashed_0023_operation_results")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create_index, drop_index)],
            state_operations=[migrations.AddIndex("operation", models.Index("actor", "id", name=NAME))],
        )
    ]
