"""Partial matches by index on PostgreSQL. SQLite has no such index."""

from typing import Any

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

COLUMNS = ("title_folded", "author_folded", "genre_folded")


def create(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for column in COLUMNS:
            schema_editor.execute(
                f"CREATE INDEX book_{column}_trigrams ON books_book USING gin ({column} gin_trgm_ops)"
            )


def drop(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        for column in COLUMNS:
            schema_editor.execute(f"DROP INDEX book_{column}_trigrams")


class Migration(migrations.Migration):
    dependencies = [("books", "0001_books")]
    operations = [TrigramExtension(), migrations.RunPython(create, drop)]
