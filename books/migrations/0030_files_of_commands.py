"""Files that a command stores while it imports them belong to no account."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from library_site.db.online_ddl import AllowNull


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("books", "0029_lent_books_filled"),
    ]
    operations = [
        AllowNull(
            model_name="importfile",
            name="user",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="import_files",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
