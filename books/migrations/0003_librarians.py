"""The group of the people who keep the books."""

from typing import Any

from django.db import migrations


def create(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="books", model="book"
    )
    permissions = [
        apps.get_model("auth", "Permission").objects.get_or_create(
            content_type=content_type, codename=f"{action}_book", defaults={"name": f"Can {action} book"}
        )[0]
        for action in ("add", "change", "delete", "view")
    ]
    librarians, _ = apps.get_model("auth", "Group").objects.get_or_create(name="Librarians")
    librarians.permissions.add(*permissions)


def drop(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Group").objects.filter(name="Librarians").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0002_trigram_indexes"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(create, drop)]
