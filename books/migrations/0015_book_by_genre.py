"""An index of genres: for lists of a genre, lists by genre, and suggestions.

On PostgreSQL it is built while others write. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models
from django.db.models.functions import Left

INDEX = models.Index(Left("genre_folded", 100), models.F("id"), name="book_by_genre")


def build_index(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS book_by_genre")
        schema_editor.execute('CREATE INDEX CONCURRENTLY book_by_genre ON books_book ((LEFT("genre_folded", 100)), id)')
    else:
        schema_editor.add_index(apps.get_model("books", "Book"), INDEX)


def drop_index(apps: Any, schema_editor: Any) -> None:
    how = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP INDEX {how}IF EXISTS book_by_genre")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0014_saved_views")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(build_index, drop_index)],
            state_operations=[migrations.AddIndex("book", INDEX)],
        )
    ]
