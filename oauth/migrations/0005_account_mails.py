"""Mails with links to choose a password, which requests ask for and a worker sends."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("oauth", "0004_second_factors"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AccountMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[("reset", "forgotten password"), ("invitation", "invitation")], max_length=10
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=254)),
                ("network", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField(db_index=True)),
                ("due_at", models.DateTimeField(db_index=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "default_permissions": (),
            },
        ),
    ]
