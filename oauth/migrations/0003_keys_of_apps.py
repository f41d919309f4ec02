"""A key that an app's key made acts for the app too: it names the app's authorization."""

from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Subquery


def name_authorizations(apps: Any, schema_editor: Any) -> None:
    keys = apps.get_model("oauth", "APIKey").objects
    makers = keys.filter(pk=OuterRef("maker")).values("authorization")
    # Keys of keys of keys: each turn reaches one generation more.
    while keys.filter(authorization=None, maker__authorization__isnull=False).update(authorization=Subquery(makers)):
        pass


class Migration(migrations.Migration):
    dependencies = [("oauth", "0002_developers")]
    operations = [migrations.RunPython(name_authorizations, migrations.RunPython.noop)]
