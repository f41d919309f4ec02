"""Books of other libraries are not copied any more. Older code reads null as "no"; the release after this one drops
the column.
"""

from django.db import migrations, models

from library_site.db.online_ddl import AllowNull


class Migration(migrations.Migration):
    dependencies = [("webhooks", "0011_unfinished")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[AllowNull("source", "mirrors", models.BooleanField(null=True, default=False))],
            state_operations=[migrations.RemoveField("source", "mirrors")],
        )
    ]
