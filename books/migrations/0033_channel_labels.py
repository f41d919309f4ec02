"""The pages say "change of many books". The database does not see it."""

from django.db import migrations, models

CHANNELS = [
    ("v1", "API, version 1"),
    ("v2", "API, version 2"),
    ("bulk", "bulk request"),
    ("admin", "admin"),
    ("import", "import"),
    ("command", "command line"),
    ("mirror", "mirroring"),
    ("operation", "change of many books"),
]


class Migration(migrations.Migration):
    dependencies = [("books", "0032_loans")]
    operations = [migrations.AlterField("actor", "channel", models.CharField(choices=CHANNELS, max_length=10))]
