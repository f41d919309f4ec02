"""The files that librarians upload to import them, and the permission to do so."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import books.fields

PERMISSION = {"codename": "import_books", "name": "Can import books"}


def allow(apps: Any, schema_editor: Any) -> None:
    """Head librarians may import. Django makes permissions only after all migrations."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="books", model="importfile"
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=PERMISSION["codename"], defaults={"name": PERMISSION["name"]}
    )
    for group in apps.get_model("auth", "Group").objects.filter(name="Head librarians"):
        group.permissions.add(permission)


def forbid(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Permission").objects.filter(content_type__app_label="books", **PERMISSION).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0018_duplicates"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ColumnMapping",
            fields=[
                ("header", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("mapping", models.JSONField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImportFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=255)),
                ("size", models.BigIntegerField()),
                ("fingerprint", models.CharField(max_length=300)),
                ("created_at", books.fields.TimestampField(db_index=True)),
                ("encoding", models.CharField(blank=True, max_length=20)),
                ("rules", models.JSONField(null=True)),
                ("check_counts", models.JSONField(default=dict)),
                ("import_counts", models.JSONField(default=dict)),
                (
                    "check_operation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="books.operation",
                    ),
                ),
                (
                    "import_operation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="books.operation",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_files",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": [("import_books", "Can import books")],
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ImportChunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="chunks",
                        to="books.importfile",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("file", "number"), name="import_chunk_number")],
            },
        ),
        migrations.CreateModel(
            name="ImportFinding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("operation_id", models.BigIntegerField()),
                ("kind", models.CharField(max_length=10)),
                ("position", models.BigIntegerField()),
                ("line", models.BigIntegerField()),
                ("reason", models.TextField(blank=True)),
                ("book_id", models.BigIntegerField(null=True)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                (
                    "file",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="findings",
                        to="books.importfile",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        models.F("file"),
                        models.F("operation_id"),
                        models.F("kind"),
                        models.F("position"),
                        name="import_finding",
                    )
                ],
            },
        ),
        migrations.RunPython(allow, forbid),
    ]
