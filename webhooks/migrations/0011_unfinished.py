"""Indexes of the deliveries and received events that wait or are dead, for their lists: few among a million.

On PostgreSQL they are built while others write. What an interrupted run left is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models

# By the name: the model and the state.
INDEXES = {f"{model}_is_{state}": (model, state) for model in ("delivery", "received") for state in ("waiting", "dead")}


def create_indexes(apps: Any, schema_editor: Any) -> None:
    concurrently = "CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    for name, (model, state) in INDEXES.items():
        schema_editor.execute(f"DROP INDEX {concurrently} IF EXISTS {name}")
        schema_editor.execute(f"CREATE INDEX {concurrently} {name} ON webhooks_{model} (id) WHERE state = '{state}'")


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    for name in INDEXES:
        schema_editor.execute(f"DROP INDEX IF EXISTS {name}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("webhooks", "0010_signature_form_c")]
    operations = [
        migrations.SeparateDatabaseAndState(
            # One for all: for each, Django builds the models of all apps anew.
            database_operations=[migrations.RunPython(create_indexes, drop_indexes)],
            state_operations=[
                migrations.AddIndex(model, models.Index("id", name=name, condition=models.Q(state=state)))
                for name, (model, state) in INDEXES.items()
            ],
        )
    ]
