"""Apps, keys, sign-in and accounts, and the group of the people who register apps and make API keys."""

import uuid
from typing import Any

from django.conf import settings
from django.db import migrations, models

ALLOWED = {
    ("oauth2_provider", "application"): ("application", ["add", "change", "delete", "view"]),
    ("oauth", "apikey"): ("API key", ["add", "change", "view"]),
    ("oauth", "authorization"): ("authorization", ["change", "view"]),
}


def create_group(apps: Any, schema_editor: Any) -> None:
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


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("oauth", "0001_credentials"),
        ("oauth", "0002_developers"),
        ("oauth", "0003_keys_of_apps"),
        ("oauth", "0004_second_factors"),
        ("oauth", "0005_account_mails"),
        ("oauth", "0006_languages"),
        ("oauth", "0007_labels"),
        ("oauth", "0008_notices"),
    ]
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
    ]
    operations = [
        migrations.CreateModel(
            "Allowance",
            fields=[
                (
                    "application",
                    models.OneToOneField(
                        settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        models.CASCADE,
                        primary_key=True,
                        related_name="allowance",
                        serialize=False,
                    ),
                ),
                ("scopes", models.CharField(max_length=200)),
            ],
        ),
        migrations.CreateModel(
            "ChangedRights",
            fields=[
                ("user_id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("scopes", models.CharField(blank=True, max_length=200)),
                ("changed_at", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            "Authorization",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("scopes", models.CharField("scopes", max_length=200)),
                ("created_at", models.DateTimeField("created at")),
                ("refreshed_at", models.DateTimeField("refreshed at", null=True)),
                ("ended_at", models.DateTimeField("ended at", db_index=True, null=True)),
                (
                    "application",
                    models.ForeignKey(
                        settings.OAUTH2_PROVIDER_APPLICATION_MODEL, models.SET_NULL, null=True, verbose_name="app"
                    ),
                ),
                ("user", models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, verbose_name="user")),
            ],
            options={
                "indexes": [models.Index(fields=["created_at"], name="authorization_created_at")],
                "verbose_name": "authorization",
                "verbose_name_plural": "authorizations",
            },
        ),
        migrations.CreateModel(
            "APIKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField("name", max_length=100)),
                ("prefix", models.CharField(editable=False, max_length=12, unique=True)),
                ("digest", models.CharField(editable=False, max_length=64)),
                ("scopes", models.CharField("scopes", max_length=200)),
                ("created_at", models.DateTimeField("created at", editable=False)),
                ("expires_at", models.DateTimeField("expires at", blank=True, null=True)),
                ("last_used_at", models.DateTimeField("last used at", editable=False, null=True)),
                ("revoked_at", models.DateTimeField("revoked at", editable=False, null=True)),
                (
                    "creator",
                    models.ForeignKey(
                        "oauth.apikey",
                        models.CASCADE,
                        editable=False,
                        null=True,
                        related_name="made",
                        db_column="maker_id",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_keys", verbose_name="owner"
                    ),
                ),
                ("authorization", models.ForeignKey("oauth.authorization", models.CASCADE, editable=False, null=True)),
            ],
            options={"verbose_name": "API key", "verbose_name_plural": "API keys"},
        ),
        migrations.CreateModel(
            "SecondFactor",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("encrypted_secret", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField()),
                ("last_step", models.BigIntegerField()),
                ("wrong_codes", models.PositiveIntegerField(default=0)),
                ("first_wrong_at", models.DateTimeField(null=True)),
                ("user", models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="second_factor")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "RecoveryCode",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=64)),
                ("factor", models.ForeignKey("oauth.secondfactor", models.CASCADE, related_name="recovery_codes")),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "AccountMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("reset", "forgotten password"),
                            ("invitation", "invitation"),
                            ("password", "new password"),
                            ("address", "new address"),
                            ("factor_on", "two-factor sign-in turned on"),
                            ("factor_off", "two-factor sign-in turned off"),
                        ],
                        max_length=10,
                    ),
                ),
                ("address", models.CharField(blank=True, max_length=254)),
                ("network", models.CharField(blank=True, max_length=64)),
                ("created_at", models.DateTimeField(db_index=True)),
                ("due_at", models.DateTimeField(db_index=True, null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("user", models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True)),
                ("language", models.CharField(blank=True, db_default="", max_length=10)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            "Profile",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        settings.AUTH_USER_MODEL,
                        models.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                    ),
                ),
                ("language", models.CharField(max_length=10)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunPython(create_group, migrations.RunPython.noop),
    ]
