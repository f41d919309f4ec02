"""A book that others refer to may be no book that can be deleted. The database does not see it."""

from django.db import migrations, models

REASONS = [
    ("no_match", "no longer matched"),
    ("isbn_in_use", "another book has the ISBN"),
    ("invalid", "the new text is empty or too long"),
    ("changed_since", "changed since"),
    ("deleted_since", "deleted since"),
    ("exists", "restored since"),
    ("protected", "something else refers to it"),
]


class Migration(migrations.Migration):
    dependencies = [("books", "0033_channel_labels")]
    operations = [migrations.AlterField("operationproblem", "reason", models.CharField(choices=REASONS, max_length=20))]
