"""Which books stand for those of other libraries."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0006_trigrams_on_sqlite"),
        ("webhooks", "0001_events"),
    ]

    operations = [
        migrations.CreateModel(
            name="MirroredBook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("remote_id", models.BigIntegerField()),
                ("version", models.BigIntegerField()),
                (
                    "book",
                    models.OneToOneField(
                        null=True, on_delete=django.db.models.deletion.CASCADE, related_name="mirrored", to="books.book"
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mirrored_books",
                        to="webhooks.source",
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("source", "remote_id"), name="mirrored_once")],
            },
        ),
    ]
