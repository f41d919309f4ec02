"""Events keep the trace of their change. The column is null where there is none, so no row is written."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0008_labels")]

    operations = [
        migrations.AddField(
            model_name="event",
            name="traceparent",
            field=models.CharField(editable=False, max_length=55, null=True),
        ),
    ]
