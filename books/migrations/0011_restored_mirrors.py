"""A mirrored book remembers the id of its deleted copy, under which a later event brings it back."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("books", "0010_history_permission"),
    ]

    operations = [
        migrations.AddField(
            model_name="mirroredbook",
            name="former_book_id",
            field=models.BigIntegerField(null=True),
        ),
    ]
