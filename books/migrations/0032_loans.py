"""An index of lends and returns, for the page of recent changes: there may be few among a million changes.

On PostgreSQL it is built while others write. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models

from books.models import IsLoan

NAME = "change_of_loan"
TEXTS = """'{"available": false}', '{"available":false}', '{"available": true}', '{"available":true}'"""


def create_index(apps: Any, schema_editor: Any) -> None:
    concurrently = ""
    if schema_editor.connection.vendor == "postgresql":
        concurrently = "CONCURRENTLY"
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
    schema_editor.execute(
        f'CREATE INDEX {concurrently} {NAME} ON books_change (at, id) WHERE (CAST("after" AS text) IN ({TEXTS}))'
    )


def drop_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0031_match_keys")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create_index, drop_index)],
            state_operations=[
                migrations.AddIndex("change", models.Index("at", "id", name=NAME, condition=models.Q(IsLoan())))
            ],
        )
    ]
