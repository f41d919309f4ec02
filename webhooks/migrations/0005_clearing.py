"""When workers delete expired rows again."""

from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0004_inbox_permission")]
    operations = [
        migrations.CreateModel(
            name="Clearing",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("next_at", models.DateTimeField(db_default=Now())),
            ],
        ),
    ]
