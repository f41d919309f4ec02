"""What tasks found belongs to their operations: the numbers of imports, and what a look into a file showed."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def move_counts(apps: Any, schema_editor: Any) -> None:
    """The pages of files that were uploaded before go on to show their numbers. There are few: of seven days."""
    operations = apps.get_model("books", "Operation").objects
    for file in apps.get_model("books", "ImportFile").objects.order_by("pk").iterator():
        operations.filter(pk=file.check_operation_id, result=None).update(result={"counts": file.check_counts})
        operations.filter(pk=file.import_operation_id, result=None).update(result={"counts": file.import_counts})


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0020_exported_workbooks"),
    ]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="result",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="importfile",
            name="preview_operation",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="books.operation",
            ),
        ),
        migrations.RunPython(move_counts, migrations.RunPython.noop),
    ]
