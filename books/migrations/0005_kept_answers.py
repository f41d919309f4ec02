"""Answers kept for requests with an Idempotency-Key."""

from django.db import migrations, models

import books.fields


class Migration(migrations.Migration):
    dependencies = [("books", "0004_isbn13")]
    operations = [
        migrations.CreateModel(
            name="KeptAnswer",
            fields=[
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("fingerprint", models.CharField(max_length=64)),
                ("status", models.PositiveSmallIntegerField()),
                ("headers", models.JSONField()),
                ("body", models.BinaryField()),
                ("kept_at", books.fields.TimestampField(db_index=True)),
            ],
        ),
    ]
