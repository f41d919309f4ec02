"""Endpoints name the credential that made them. Those that are there already are their owners' own."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0002_developers"), ("oauth", "0003_keys_of_apps")]

    operations = [
        migrations.AddField(
            model_name="endpoint",
            name="authorization",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="oauth.authorization",
            ),
        ),
        migrations.AddField(
            model_name="endpoint", name="expires_at", field=models.DateTimeField(editable=False, null=True)
        ),
        migrations.AddField(
            model_name="endpoint",
            name="maker",
            field=models.ForeignKey(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="oauth.apikey",
            ),
        ),
    ]
