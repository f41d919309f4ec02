"""The inbox has the events of all sources, so developers no longer see it without a permission of their own."""

from typing import Any

from django.db import migrations


def forbid(apps: Any, schema_editor: Any) -> None:
    for developers, permission in find_permissions(apps):
        developers.permissions.remove(permission)


def allow(apps: Any, schema_editor: Any) -> None:
    for developers, permission in find_permissions(apps):
        developers.permissions.add(permission)


def find_permissions(apps: Any) -> list[tuple[Any, Any]]:
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="webhooks", codename="view_received"
    )
    groups = apps.get_model("auth", "Group").objects.filter(name="Developers")
    return [(group, permission) for group in groups for permission in permissions]


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0003_endpoint_makers"), ("contenttypes", "0002_remove_content_type_name")]
    operations = [migrations.RunPython(forbid, allow)]
