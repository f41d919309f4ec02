"""Empty: the index that it made is one of the search texts now (`0039_match_keys_of_search_texts`)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("books", "0030_files_of_commands")]
