"""The group of the people who register apps and make API keys."""

from typing import Any

from django.db import migrations

ALLOWED = {
    ("oauth2_provider", "application"): ("application", ["add", "change", "delete", "view"]),
    ("oauth", "apikey"): ("API key", ["add", "change", "view"]),
    ("oauth", "authorization"): ("authorization", ["change", "view"]),
}


def create(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    developers, _ = apps.get_model("auth", "Group").objects.get_or_create(name="Developers")
    for (app_label, model), (name, actions) in ALLOWED.items():
        content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
            app_label=app_label, model=model
        )
        for action in actions:
            permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
                content_type=content_type, codename=f"{action}_{model}", defaults={"name": f"Can {action} {name}"}
            )
            developers.permissions.add(permission)


def drop(apps: Any, schema_editor: Any) -> None:
    apps.get_model("auth", "Group").objects.filter(name="Developers").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("oauth", "0001_credentials"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(create, drop)]
