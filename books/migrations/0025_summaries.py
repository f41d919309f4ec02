"""Numbers about all books and changes, which pages show without counting."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("books", "0024_operations_by_actor")]
    operations = [
        migrations.CreateModel(
            name="Summary",
            fields=[
                ("name", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("numbers", models.JSONField()),
                ("counted_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
            ],
            options={"default_permissions": ()},
        ),
        migrations.AlterField(
            model_name="actor",
            name="channel",
            field=models.CharField(
                choices=[
                    ("v1", "API, version 1"),
                    ("v2", "API, version 2"),
                    ("bulk", "bulk request"),
                    ("admin", "admin"),
                    ("import", "import"),
                    ("command", "command line"),
                    ("mirror", "mirroring"),
                    ("operation", "operation"),
                ],
                max_length=10,
            ),
        ),
    ]
