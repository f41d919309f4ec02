"""Drops the trigram indexes of the book table, which the one of the search texts replaces.

An index of the book table costs each change of a book. Older code, during an upgrade or after a rollback, finds the
same books without them: it reads all. SQLite keeps its index: version 1 uses it, and older code cannot search without.
"""

from typing import Any

from django.db import migrations


def drop_indexes(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for field in ("title", "author", "genre"):
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS book_{field}_folded_trigrams")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0037_search_texts_filled")]
    operations = [migrations.RunPython(drop_indexes, migrations.RunPython.noop)]
