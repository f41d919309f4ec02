"""When backups were restored: the stream refuses older cursors."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0005_clearing")]
    operations = [
        migrations.CreateModel(
            name="Restoration",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("restored_at", models.DateTimeField()),
            ],
        ),
    ]
