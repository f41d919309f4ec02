"""Events, endpoints, deliveries and the inbox. Those who have apps and keys have endpoints, too."""

import uuid
from typing import Any

from django.conf import settings
from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

from webhooks.models import Transaction

ALLOWED = {
    "endpoint": ["add", "change", "delete", "view"],
    "delivery": ["change", "view"],
    "attempt": ["view"],
    "event": ["view"],
    "source": ["view"],
}


def allow(apps: Any, schema_editor: Any) -> None:
    """Django makes permissions after all migrations, too late for a group that holds them."""
    developers, _ = apps.get_model("auth", "Group").objects.get_or_create(name="Developers")
    for model, actions in ALLOWED.items():
        for action in actions:
            developers.permissions.add(create_permission(apps, model, action))
    # With the name that it has in each library. The inbox has the events of all sources, so nobody gets it here.
    create_permission(apps, "received", "view")


def create_permission(apps: Any, model: str, action: str) -> Any:
    content_type, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="webhooks", model=model
    )
    permission, _ = apps.get_model("auth", "Permission").objects.get_or_create(
        content_type=content_type, codename=f"{action}_{model}", defaults={"name": f"Can {action} {model}"}
    )
    return permission


class Migration(migrations.Migration):
    initial = True
    replaces = [
        ("webhooks", "0001_events"),
        ("webhooks", "0002_developers"),
        ("webhooks", "0003_endpoint_makers"),
        ("webhooks", "0004_inbox_permission"),
        ("webhooks", "0005_clearing"),
        ("webhooks", "0006_restorations"),
        ("webhooks", "0007_delivery_counts"),
        ("webhooks", "0008_labels"),
        ("webhooks", "0009_event_traceparent"),
    ]
    dependencies = [("oauth", "0001_squashed_0008_notices"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.CreateModel(
            "Endpoint",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField("URL", max_length=2000)),
                ("kinds", models.CharField("kinds", default="*", max_length=200)),
                (
                    "form",
                    models.CharField(
                        "signature form",
                        choices=[("A", "A: the body"), ("B", "B: the time and the body")],
                        default="B",
                        max_length=1,
                    ),
                ),
                ("description", models.CharField("description", blank=True, max_length=200)),
                ("in_flight_limit", models.PositiveSmallIntegerField("in flight limit", default=50)),
                (
                    "state",
                    models.CharField(
                        "state",
                        choices=[("active", "Active"), ("disabled", "Disabled"), ("deleted", "Deleted")],
                        db_default="active",
                        default="active",
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField("reason", blank=True, max_length=200)),
                ("dead_in_a_row", models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                ("created_at", models.DateTimeField("created at", editable=False)),
                (
                    "owner",
                    models.ForeignKey(
                        settings.AUTH_USER_MODEL,
                        models.SET_NULL,
                        null=True,
                        related_name="endpoints",
                        verbose_name="owner",
                    ),
                ),
                (
                    "authorization",
                    models.ForeignKey(
                        "oauth.authorization", models.SET_NULL, editable=False, null=True, related_name="+"
                    ),
                ),
                ("expires_at", models.DateTimeField("expires at", editable=False, null=True)),
                (
                    "creator",
                    models.ForeignKey(
                        "oauth.apikey",
                        models.SET_NULL,
                        editable=False,
                        null=True,
                        related_name="+",
                        db_column="maker_id",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(in_flight_limit__range=(1, 1000)), name="endpoint_in_flight_limit"
                    )
                ],
                "verbose_name": "endpoint",
                "verbose_name_plural": "endpoints",
            },
        ),
        migrations.CreateModel(
            "Event",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("uuid", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ("kind", models.CharField("kind", max_length=50)),
                ("subject", models.BigIntegerField(null=True)),
                ("body", models.BinaryField()),
                ("created_at", models.DateTimeField("created at")),
                ("transaction", models.BigIntegerField(db_default=Transaction(), editable=False)),
                ("traceparent", models.CharField(editable=False, max_length=55, null=True)),
            ],
            options={
                "indexes": [
                    models.Index("transaction", "id", name="event_in_the_stream"),
                    models.Index("created_at", name="event_by_created_at"),
                ],
                "verbose_name": "event",
                "verbose_name_plural": "events",
            },
        ),
        migrations.CreateModel(
            "Delivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("replay", models.PositiveIntegerField("replay", db_default=0, default=0)),
                (
                    "state",
                    models.CharField(
                        "state",
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("dead", "Dead")],
                        db_default="waiting",
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("next_at", models.DateTimeField("next at", db_default=Now(), null=True)),
                ("lease", models.UUIDField(null=True)),
                ("attempted", models.PositiveSmallIntegerField("attempted", db_default=0, default=0)),
                ("claimed", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField("created at", db_default=Now())),
                ("finished_at", models.DateTimeField("finished at", null=True)),
                (
                    "endpoint",
                    models.ForeignKey(
                        "webhooks.endpoint",
                        models.CASCADE,
                        db_index=False,
                        related_name="deliveries",
                        verbose_name="endpoint",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        "webhooks.event",
                        models.CASCADE,
                        db_index=False,
                        related_name="deliveries",
                        verbose_name="event",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    models.Index("endpoint", "id", name="delivery_of_endpoint"),
                    models.Index("endpoint", "next_at", condition=Q(next_at__isnull=False), name="delivery_waiting"),
                    models.Index("endpoint", condition=Q(lease__isnull=False), name="delivery_in_flight"),
                ],
                "constraints": [models.UniqueConstraint(fields=("event", "endpoint", "replay"), name="delivery_once")],
                "verbose_name": "delivery",
            },
        ),
        migrations.CreateModel(
            "Source",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.SlugField("name", unique=True)),
                (
                    "form",
                    models.CharField(
                        "signature form",
                        choices=[("A", "A: the body"), ("B", "B: the time and the body")],
                        default="B",
                        max_length=1,
                    ),
                ),
                ("enabled", models.BooleanField("enabled", default=True)),
                ("mirrors", models.BooleanField("mirrors its books", default=False)),
                ("created_at", models.DateTimeField("created at", editable=False)),
            ],
            options={"verbose_name": "source", "verbose_name_plural": "sources"},
        ),
        migrations.CreateModel(
            "Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("started_at", models.DateTimeField("started at")),
                ("milliseconds", models.PositiveIntegerField("milliseconds")),
                ("status", models.PositiveSmallIntegerField("status", null=True)),
                ("error", models.CharField("error", blank=True, max_length=200)),
                ("answer", models.BinaryField()),
                ("delivery", models.ForeignKey("webhooks.delivery", models.CASCADE, related_name="attempts")),
            ],
            options={"verbose_name": "attempt", "verbose_name_plural": "attempts"},
        ),
        migrations.CreateModel(
            "EndpointSecret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sealed", models.TextField(editable=False)),
                (
                    "state",
                    models.CharField("state", choices=[("pending", "Pending"), ("active", "Active")], max_length=10),
                ),
                ("created_at", models.DateTimeField("created at")),
                ("endpoint", models.ForeignKey("webhooks.endpoint", models.CASCADE, related_name="secrets")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("endpoint", "state"), name="endpoint_secret_of_each_state")
                ],
                "verbose_name": "secret",
                "verbose_name_plural": "secrets",
            },
        ),
        migrations.CreateModel(
            "Received",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("event_id", models.CharField("event id", max_length=200)),
                ("kind", models.CharField("kind", max_length=100)),
                ("body", models.BinaryField()),
                ("received_at", models.DateTimeField("received at", db_default=Now())),
                (
                    "state",
                    models.CharField(
                        "state",
                        choices=[("waiting", "Waiting"), ("done", "Done"), ("dead", "Dead")],
                        db_default="waiting",
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("next_at", models.DateTimeField("next at", db_default=Now(), null=True)),
                ("lease", models.UUIDField(null=True)),
                ("attempted", models.PositiveSmallIntegerField("attempted", db_default=0, default=0)),
                ("claimed", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("error", models.TextField("error", blank=True, db_default="")),
                ("finished_at", models.DateTimeField("finished at", null=True)),
                (
                    "source",
                    models.ForeignKey(
                        "webhooks.source", models.CASCADE, related_name="received", verbose_name="source"
                    ),
                ),
            ],
            options={
                "verbose_name": "received event",
                "verbose_name_plural": "inbox",
                "indexes": [models.Index("next_at", condition=Q(next_at__isnull=False), name="received_waiting")],
                "constraints": [models.UniqueConstraint(fields=("source", "event_id"), name="received_once")],
            },
        ),
        migrations.CreateModel(
            "SourceSecret",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sealed", models.TextField(editable=False)),
                ("created_at", models.DateTimeField("created at")),
                ("source", models.ForeignKey("webhooks.source", models.CASCADE, related_name="secrets")),
            ],
            options={"verbose_name": "secret", "verbose_name_plural": "secrets"},
        ),
        migrations.CreateModel(
            "Clearing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("next_at", models.DateTimeField(db_default=Now())),
            ],
        ),
        migrations.CreateModel(
            "Restoration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("restored_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            "DeliveryCount",
            fields=[
                ("shard", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ("sent", models.BigIntegerField()),
                ("failed", models.BigIntegerField()),
                ("dead", models.BigIntegerField()),
            ],
        ),
        migrations.RunPython(allow, migrations.RunPython.noop),
    ]
