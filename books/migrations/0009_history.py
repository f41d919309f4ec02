"""Who changed which book, when, and the members before and after."""

import django.db.models.deletion
from django.db import migrations, models

import books.fields


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0008_stored_responses"),
    ]

    operations = [
        migrations.CreateModel(
            name="Actor",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                (
                    "channel",
                    models.CharField(
                        choices=[
                            ("v1", "interface, version 1"),
                            ("v2", "interface, version 2"),
                            ("bulk", "bulk request"),
                            ("admin", "admin"),
                            ("import", "import"),
                            ("command", "command line"),
                            ("mirror", "mirroring"),
                            ("operation", "operation"),
                        ],
                        max_length=10,
                    ),
                ),
                ("user_id", models.BigIntegerField(db_index=True, null=True)),
                ("identity", models.CharField(max_length=300, unique=True)),
                ("user_name", models.CharField(blank=True, max_length=150)),
                ("app_name", models.CharField(blank=True, max_length=255)),
                ("api_key_name", models.CharField(blank=True, max_length=100)),
                ("source_name", models.CharField(blank=True, max_length=100)),
            ],
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("kind", models.CharField(max_length=20)),
                ("created_at", books.fields.TimestampField()),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="books.actor",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"),
                ),
                ("book_id", models.BigIntegerField()),
                ("version", models.PositiveIntegerField()),
                (
                    "kind",
                    models.PositiveSmallIntegerField(
                        choices=[
                            (1, "created"),
                            (2, "changed"),
                            (3, "deleted"),
                            (4, "restored"),
                            (5, "merged"),
                        ]
                    ),
                ),
                ("at", books.fields.TimestampField()),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="books.actor",
                    ),
                ),
                (
                    "operation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="books.operation",
                    ),
                ),
            ],
            options={
                "permissions": [("view_history", "Can view the history of books")],
                "default_permissions": (),
                "indexes": [
                    models.Index(models.F("at"), models.F("id"), name="change_by_time"),
                    models.Index(models.F("actor"), models.F("at"), models.F("id"), name="change_by_actor"),
                    models.Index(models.F("kind"), models.F("at"), models.F("id"), name="change_by_kind"),
                    models.Index(
                        models.F("operation"),
                        models.F("id"),
                        condition=models.Q(("operation__isnull", False)),
                        name="change_by_operation",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("book_id", "version"), name="change_version")],
            },
        ),
    ]
