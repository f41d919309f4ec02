"""Names of tables and columns that people read. The database stays as it is."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("oauth", "0006_languages"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apikey",
            options={"verbose_name": "API key", "verbose_name_plural": "API keys"},
        ),
        migrations.AlterModelOptions(
            name="authorization",
            options={"verbose_name": "authorization", "verbose_name_plural": "authorizations"},
        ),
        migrations.AlterField(
            model_name="apikey",
            name="created_at",
            field=models.DateTimeField(editable=False, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="expires at"),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="last_used_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="last used at"),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="name",
            field=models.CharField(max_length=100, verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_keys",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="revoked_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="revoked at"),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="scopes",
            field=models.CharField(max_length=200, verbose_name="scopes"),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="application",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                verbose_name="app",
            ),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="created_at",
            field=models.DateTimeField(verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="ended_at",
            field=models.DateTimeField(db_index=True, null=True, verbose_name="ended at"),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="refreshed_at",
            field=models.DateTimeField(null=True, verbose_name="refreshed at"),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="scopes",
            field=models.CharField(max_length=200, verbose_name="scopes"),
        ),
        migrations.AlterField(
            model_name="authorization",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
    ]
