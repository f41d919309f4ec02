"""Views that all librarians see, and the view that a person's list of books opens with."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("books", "0025_summaries")]
    operations = [
        migrations.AddField(
            model_name="savedview",
            name="is_shared",
            field=models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddField(
            model_name="listsettings",
            name="default_view",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="books.savedview",
            ),
        ),
    ]
