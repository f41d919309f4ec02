"""Operations become work that is done in batches, resumed, cancelled and undone; and who may begin them.

On PostgreSQL the table is locked for a moment only, and its indexes are built while others write. What is left of an
interrupted run is dropped by the next one.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q

from library_site.db.online_ddl import execute_with_short_locks

STATES = [
    ("waiting", "waiting"),
    ("running", "running"),
    ("done", "done"),
    ("cancelled", "cancelled"),
    ("failed", "failed"),
]
REASONS = [
    ("no_match", "no longer matched"),
    ("isbn_in_use", "another book has the ISBN"),
    ("invalid", "the new text is empty or too long"),
    ("changed_since", "changed since"),
    ("deleted_since", "deleted since"),
    ("exists", "restored since"),
]
PERMISSIONS = {
    "bulk_edit_books": "Can edit many books together",
    "undo_others_operations": "Can cancel and undo the operations of others",
}
HEAD_LIBRARIANS = "Head librarians"
# With what follows the type of a column.
COLUMNS: dict[str, tuple[str, Any]] = {
    "state": (
        "DEFAULT 'done' NOT NULL",
        models.CharField(max_length=10, choices=STATES, default="done", db_default="done"),
    ),
    "parameters": ("", models.JSONField(null=True)),
    "token": ("", models.CharField(max_length=64, null=True)),
    "cursor": ("", models.BigIntegerField(null=True)),
    "last": ("", models.BigIntegerField(null=True)),
    **{name: ("", models.IntegerField(null=True)) for name in ("matched", "changed", "unchanged", "refused", "missed")},
    "started_at": ("", models.DateTimeField(null=True)),
    "finished_at": ("", models.DateTimeField("finished at", null=True)),
    "next_at": ("", models.DateTimeField(null=True)),
    "error": ("DEFAULT '' NOT NULL", models.TextField(blank=True, default="", db_default="")),
    "lease": ("", models.UUIDField(null=True)),
    "attempted": (
        "DEFAULT 0 NOT NULL CHECK (attempted >= 0)",
        models.PositiveSmallIntegerField("attempted", default=0, db_default=0),
    ),
    "claimed": (
        "DEFAULT 0 NOT NULL CHECK (claimed >= 0)",
        models.PositiveSmallIntegerField(default=0, db_default=0),
    ),
}
UNDO_OF = models.ForeignKey(
    "books.operation",
    django.db.models.deletion.DO_NOTHING,
    null=True,
    related_name="undos",
    db_constraint=False,
    db_index=False,
)
INDEXES = {
    "operation_waiting": "INDEX {} operation_waiting ON books_operation (next_at) WHERE next_at IS NOT NULL",
    "operation_token": "UNIQUE INDEX {} operation_token ON books_operation (token) WHERE token IS NOT NULL",
    "operation_undo": "UNIQUE INDEX {} operation_undo ON books_operation (undo_of_id)"
    " WHERE undo_of_id IS NOT NULL AND state IN ('waiting', 'running', 'done')",
}


def list_columns(database: Any) -> dict[str, str]:
    """Returns the definitions of the new columns by their names."""
    return {name: f"{field.db_type(database)} {suffix}" for name, (suffix, field) in COLUMNS.items()} | {
        "undo_of_id": "bigint"
    }


def extend(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection
    columns = list_columns(database)
    if database.vendor == "postgresql":
        additions = (f"ADD COLUMN IF NOT EXISTS {name} {definition}" for name, definition in columns.items())
        execute_with_short_locks(database, [f"ALTER TABLE books_operation {', '.join(additions)}"])
        for name in INDEXES:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    else:
        for name, definition in columns.items():
            schema_editor.execute(f"ALTER TABLE books_operation ADD COLUMN {name} {definition}")
    for sql in INDEXES.values():
        schema_editor.execute("CREATE " + sql.format("CONCURRENTLY" if database.vendor == "postgresql" else ""))


def shrink(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection
    for name in INDEXES:
        schema_editor.execute(f"DROP INDEX IF EXISTS {name}")
    statements = [f"ALTER TABLE books_operation DROP COLUMN {name}" for name in list_columns(database)]
    if database.vendor == "postgresql":
        execute_with_short_locks(database, statements)
        return
    for statement in statements:
        schema_editor.execute(statement)


def allow(apps: Any, schema_editor: Any) -> None:
    """Head librarians may do what librarians may, and more. Django makes permissions only after all migrations."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="books", model="operation"
    )
    groups = apps.get_model("auth", "Group").objects
    head_librarians, _ = groups.get_or_create(name=HEAD_LIBRARIANS)
    for librarians in groups.filter(name="Librarians"):
        head_librarians.permissions.add(*librarians.permissions.all())
    for codename, name in PERMISSIONS.items():
        permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=content_type, codename=codename, defaults={"name": name}
        )
        head_librarians.permissions.add(permission)


def forbid(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Group").objects.filter(name=HEAD_LIBRARIANS).delete()
    apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="books", codename__in=PERMISSIONS
    ).delete()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("books", "0015_book_by_genre"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(extend, shrink)],
            state_operations=[
                *(migrations.AddField("operation", name, field) for name, (_, field) in COLUMNS.items()),
                migrations.AddField("operation", "undo_of", UNDO_OF),
                migrations.AddIndex(
                    "operation",
                    models.Index("next_at", name="operation_waiting", condition=Q(next_at__isnull=False)),
                ),
                migrations.AddConstraint(
                    "operation",
                    models.UniqueConstraint(fields=["token"], name="operation_token", condition=Q(token__isnull=False)),
                ),
                migrations.AddConstraint(
                    "operation",
                    models.UniqueConstraint(
                        fields=["undo_of"],
                        name="operation_undo",
                        condition=Q(undo_of__isnull=False, state__in=["waiting", "running", "done"]),
                    ),
                ),
            ],
        ),
        migrations.AlterModelOptions("operation", {"permissions": list(PERMISSIONS.items())}),
        migrations.CreateModel(
            name="OperationProblem",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("subject", models.BigIntegerField()),
                ("reason", models.CharField(choices=REASONS, max_length=20)),
                ("detail", models.CharField(blank=True, max_length=500)),
                (
                    "operation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="problems",
                        to="books.operation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index("operation", "id", name="operation_problems")],
            },
        ),
        migrations.RunPython(allow, forbid),
    ]
