"""Books of other libraries are not copied any more. The release after this one drops the table.

Older code still reads and writes it. Its foreign keys go, because the running code deletes books without it.
"""

from copy import copy
from typing import Any

from django.db import migrations

from library_site.db.online_ddl import execute_with_short_locks


def drop_foreign_keys(apps: Any, schema_editor: Any) -> None:
    model = apps.get_model("books", "MirroredBook")
    if schema_editor.connection.vendor == "postgresql":
        for name in schema_editor._constraint_names(model, foreign_key=True):
            statement = f"ALTER TABLE {model._meta.db_table} DROP CONSTRAINT {schema_editor.quote_name(name)}"
            execute_with_short_locks(schema_editor.connection, [statement])
        return
    for name in ("source", "book"):
        field = model._meta.get_field(name)
        checked_field = copy(field)
        field.db_constraint = False
        schema_editor.alter_field(model, checked_field, field)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0034_protected_books")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop_foreign_keys, migrations.RunPython.noop)],
            state_operations=[migrations.DeleteModel("MirroredBook")],
        )
    ]
