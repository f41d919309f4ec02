"""Names of tables and columns that people read. The database stays as it is."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0007_delivery_counts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="attempt",
            options={"verbose_name": "attempt", "verbose_name_plural": "attempts"},
        ),
        migrations.AlterModelOptions(
            name="delivery",
            options={"verbose_name": "delivery", "verbose_name_plural": "deliveries"},
        ),
        migrations.AlterModelOptions(
            name="endpoint",
            options={"verbose_name": "endpoint", "verbose_name_plural": "endpoints"},
        ),
        migrations.AlterModelOptions(
            name="endpointsecret",
            options={"verbose_name": "secret", "verbose_name_plural": "secrets"},
        ),
        migrations.AlterModelOptions(
            name="event",
            options={"verbose_name": "event", "verbose_name_plural": "events"},
        ),
        migrations.AlterModelOptions(
            name="source",
            options={"verbose_name": "source", "verbose_name_plural": "sources"},
        ),
        migrations.AlterModelOptions(
            name="sourcesecret",
            options={"verbose_name": "secret", "verbose_name_plural": "secrets"},
        ),
        migrations.AlterField(
            model_name="attempt",
            name="error",
            field=models.CharField(blank=True, max_length=200, verbose_name="error"),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="milliseconds",
            field=models.PositiveIntegerField(verbose_name="milliseconds"),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="started_at",
            field=models.DateTimeField(verbose_name="started at"),
        ),
        migrations.AlterField(
            model_name="attempt",
            name="status",
            field=models.PositiveSmallIntegerField(null=True, verbose_name="status"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="attempted",
            field=models.PositiveSmallIntegerField(db_default=0, default=0, verbose_name="attempted"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="webhooks.endpoint",
                verbose_name="endpoint",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="event",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="webhooks.event",
                verbose_name="event",
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="finished_at",
            field=models.DateTimeField(null=True, verbose_name="finished at"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="next_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), null=True, verbose_name="next at"
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="replay",
            field=models.PositiveIntegerField(db_default=0, default=0, verbose_name="replay"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="state",
            field=models.CharField(
                choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("dead", "Dead")],
                db_default="waiting",
                default="waiting",
                max_length=10,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="created_at",
            field=models.DateTimeField(editable=False, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="description",
            field=models.CharField(blank=True, max_length=200, verbose_name="description"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="expires_at",
            field=models.DateTimeField(editable=False, null=True, verbose_name="expires at"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="in_flight_limit",
            field=models.PositiveSmallIntegerField(default=50, verbose_name="in flight limit"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="kinds",
            field=models.CharField(default="*", max_length=200, verbose_name="kinds"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="owner",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="endpoints",
                to=settings.AUTH_USER_MODEL,
                verbose_name="owner",
            ),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="reason",
            field=models.CharField(blank=True, max_length=200, verbose_name="reason"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="state",
            field=models.CharField(
                choices=[("active", "Active"), ("disabled", "Disabled"), ("deleted", "Deleted")],
                db_default="active",
                default="active",
                max_length=10,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="endpointsecret",
            name="created_at",
            field=models.DateTimeField(verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="endpointsecret",
            name="state",
            field=models.CharField(
                choices=[("pending", "Pending"), ("active", "Active")], max_length=10, verbose_name="state"
            ),
        ),
        migrations.AlterField(
            model_name="event",
            name="created_at",
            field=models.DateTimeField(verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="event",
            name="kind",
            field=models.CharField(max_length=50, verbose_name="kind"),
        ),
        migrations.AlterField(
            model_name="received",
            name="attempted",
            field=models.PositiveSmallIntegerField(db_default=0, default=0, verbose_name="attempted"),
        ),
        migrations.AlterField(
            model_name="received",
            name="error",
            field=models.TextField(blank=True, db_default="", verbose_name="error"),
        ),
        migrations.AlterField(
            model_name="received",
            name="event_id",
            field=models.CharField(max_length=200, verbose_name="event id"),
        ),
        migrations.AlterField(
            model_name="received",
            name="finished_at",
            field=models.DateTimeField(null=True, verbose_name="finished at"),
        ),
        migrations.AlterField(
            model_name="received",
            name="kind",
            field=models.CharField(max_length=100, verbose_name="kind"),
        ),
        migrations.AlterField(
            model_name="received",
            name="next_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), null=True, verbose_name="next at"
            ),
        ),
        migrations.AlterField(
            model_name="received",
            name="received_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(), verbose_name="received at"
            ),
        ),
        migrations.AlterField(
            model_name="received",
            name="source",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="received",
                to="webhooks.source",
                verbose_name="source",
            ),
        ),
        migrations.AlterField(
            model_name="received",
            name="state",
            field=models.CharField(
                choices=[("waiting", "Waiting"), ("done", "Done"), ("dead", "Dead")],
                db_default="waiting",
                default="waiting",
                max_length=10,
                verbose_name="state",
            ),
        ),
        migrations.AlterField(
            model_name="source",
            name="created_at",
            field=models.DateTimeField(editable=False, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="source",
            name="enabled",
            field=models.BooleanField(default=True, verbose_name="enabled"),
        ),
        migrations.AlterField(
            model_name="source",
            name="name",
            field=models.SlugField(unique=True, verbose_name="name"),
        ),
        migrations.AlterField(
            model_name="sourcesecret",
            name="created_at",
            field=models.DateTimeField(verbose_name="created at"),
        ),
    ]
