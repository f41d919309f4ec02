"""An index that finds possible duplicates: books with the same match key (`books.match_keys`).

On PostgreSQL it is built while others write. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models

from books.match_keys import MatchKey

NAME = "book_by_match_key"
MAIN_TITLE = {
    "postgresql": "split_part(title_folded, ':', 1)",
    "sqlite": "substr(title_folded, 1, instr(title_folded || ':', ':') - 1)",
}
KEY = (
    "substr(rtrim({main_title}, ' ./,;='), 1, 100)"
    " || ' ' || CAST(length(replace(replace(replace(replace(author_folded, ' ', ''), ',', ''), '.', ''), '-', ''))"
    " AS text)"
) + "".join(
    f" || ' ' || CAST(length(author_folded) - length(replace(author_folded, '{letter}', '')) AS text)"
    for letter in "aeinor"
)


def create_index(apps: Any, schema_editor: Any) -> None:
    vendor, concurrently = schema_editor.connection.vendor, ""
    if vendor == "postgresql":
        concurrently = "CONCURRENTLY"
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
    key = KEY.format(main_title=MAIN_TITLE[vendor])
    schema_editor.execute(f"CREATE INDEX {concurrently} {NAME} ON books_book (({key}), id)")


def drop_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0030_files_of_commands")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create_index, drop_index)],
            state_operations=[migrations.AddIndex("book", models.Index(MatchKey(), models.F("id"), name=NAME))],
        )
    ]
