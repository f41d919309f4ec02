"""The group of the people who have apps and keys has endpoints, too."""

from typing import Any

from django.db import migrations

ALLOWED = {
    "endpoint": ["add", "change", "delete", "view"],
    "delivery": ["change", "view"],
    "attempt": ["view"],
    "event": ["view"],
    "source": ["view"],
    "received": ["view"],
}


def allow(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    developers, _ = apps.get_model("auth", "Group").objects.get_or_create(name="Developers")
    for model, actions in ALLOWED.items():
        content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
            app_label="webhooks", model=model
        )
        for action in actions:
            permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
                content_type=content_type, codename=f"{action}_{model}", defaults={"name": f"Can {action} {model}"}
            )
            developers.permissions.add(permission)


def forbid(apps: Any, schema_editor: Any) -> None:
    for developers in apps.get_model("auth", "Group").objects.filter(name="Developers"):
        developers.permissions.remove(*developers.permissions.filter(content_type__app_label="webhooks"))


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_events"), ("oauth", "0002_developers")]
    operations = [migrations.RunPython(allow, forbid)]
