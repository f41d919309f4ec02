"""Endpoints and sources may sign in form C. The choices are the code's alone: no table changes."""

from django.db import migrations, models

FORM_CHOICES = [("A", "A: the body"), ("B", "B: the time and the body"), ("C", "C: Standard Webhooks")]


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0001_squashed_0009_event_traceparent")]
    operations = [
        migrations.AlterField(
            model, "form", models.CharField("signature form", choices=FORM_CHOICES, default="B", max_length=1)
        )
        for model in ("endpoint", "source")
    ]
