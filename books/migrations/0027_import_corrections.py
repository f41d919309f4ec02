"""Cells of uploaded files that librarians correct in the page of a check."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("books", "0026_shared_views")]
    operations = [
        migrations.CreateModel(
            name="ImportCorrection",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("operation_id", models.BigIntegerField()),
                ("position", models.BigIntegerField()),
                ("member", models.CharField(max_length=20)),
                ("value", models.TextField(null=True)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="corrections",
                        to="books.importfile",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(
                        fields=("file", "operation_id", "position", "member"), name="import_correction_cell"
                    )
                ],
            },
        )
    ]
