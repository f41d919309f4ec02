"""Librarians may see who changed a book."""

from typing import Any

from django.db import migrations


def allow(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="books", model="change"
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename="view_history", defaults={"name": "Can view the history of books"}
    )
    for librarians in apps.get_model("auth", "Group").objects.filter(name="Librarians"):
        librarians.permissions.add(permission)


def forbid(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="books", codename="view_history"
    ).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0009_history"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(allow, forbid)]
