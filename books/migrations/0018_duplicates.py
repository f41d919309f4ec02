"""Books that look like duplicates and are none are remembered, and head librarians may merge the others."""

from typing import Any

from django.db import migrations, models


def allow(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="books", model="distinctbooks"
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename="merge_books", defaults={"name": "Can merge books"}
    )
    for head_librarians in apps.get_model("auth", "Group").objects.filter(name="Head librarians"):
        head_librarians.permissions.add(permission)


def forbid(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="books", codename="merge_books"
    ).delete()


class Migration(migrations.Migration):
    dependencies = [("books", "0017_labels")]
    operations = [
        migrations.CreateModel(
            name="DistinctBooks",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first_id", models.BigIntegerField()),
                ("second_id", models.BigIntegerField()),
            ],
            options={
                "permissions": [("merge_books", "Can merge books")],
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("first_id", "second_id"), name="distinct_books")],
            },
        ),
        migrations.RunPython(allow, forbid),
    ]
