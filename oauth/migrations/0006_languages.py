"""The languages that people choose, and those of the mails to them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("oauth", "0005_account_mails"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Profile",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("language", models.CharField(max_length=10)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.AddField(
            model_name="accountmail",
            name="language",
            field=models.CharField(blank=True, db_default="", max_length=10),
        ),
    ]
