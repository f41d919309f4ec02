"""The workbooks that operations write, for some days."""

import django.db.models.deletion
from django.db import migrations, models

import books.fields


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0019_imports"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExportChunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                ("created_at", books.fields.TimestampField(db_index=True)),
                (
                    "operation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="export_chunks",
                        to="books.operation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("operation", "number"), name="export_chunk_number")],
            },
        ),
    ]
