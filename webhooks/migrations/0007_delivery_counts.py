"""Workers count their attempts by result, for metrics. The counts begin at 0."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0006_restorations")]

    operations = [
        migrations.CreateModel(
            name="DeliveryCount",
            fields=[
                ("shard", models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ("sent", models.BigIntegerField()),
                ("failed", models.BigIntegerField()),
                ("dead", models.BigIntegerField()),
            ],
        ),
    ]
