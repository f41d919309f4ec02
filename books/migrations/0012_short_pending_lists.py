"""Keeps the pending lists of PostgreSQL's trigram indexes short: a filter reads all of them (manual, GIN, fast update).

The lock of ALTER INDEX lasts a moment.
"""

from typing import Any

from django.db import migrations

from library_site.db.online_ddl import execute_with_short_locks

INDEXES = ("book_title_folded_trigrams", "book_author_folded_trigrams", "book_genre_folded_trigrams")
KIBIBYTES = 256


def set_limit(apps: Any, schema_editor: Any) -> None:
    alter_indexes(schema_editor, f"SET (gin_pending_list_limit = {KIBIBYTES})")


def reset_limit(apps: Any, schema_editor: Any) -> None:
    alter_indexes(schema_editor, "RESET (gin_pending_list_limit)")


def alter_indexes(schema_editor: Any, action: str) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for index in INDEXES:
            execute_with_short_locks(schema_editor.connection, [f"ALTER INDEX {index} {action}"])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0011_restored_mirrors")]
    operations = [migrations.RunPython(set_limit, reset_limit)]
