"""An index that finds possible duplicates: search texts with the same match key (`books.book.match_keys`).

On PostgreSQL it is built while others write. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations, models

from books.book.match_keys import MatchKey

NAME = "search_text_by_match_key"
# What a library has that was upgraded before the release.
FORMER = "book_by_match_key"
MAIN_TITLE = {
    "postgresql": "split_part(title, ':', 1)",
    "sqlite": "substr(title, 1, instr(title || ':', ':') - 1)",
}
KEY = (
    "substr(rtrim({main_title}, ' ./,;='), 1, 100)"
    " || ' ' || CAST(length(replace(replace(replace(replace(author, ' ', ''), ',', ''), '.', ''), '-', ''))"
    " AS text)"
) + "".join(f" || ' ' || CAST(length(author) - length(replace(author, '{letter}', '')) AS text)" for letter in "aeinor")


def create_index(apps: Any, schema_editor: Any) -> None:
    vendor = schema_editor.connection.vendor
    concurrently = "CONCURRENTLY" if vendor == "postgresql" else ""
    for name in (FORMER, NAME):
        schema_editor.execute(f"DROP INDEX {concurrently} IF EXISTS {name}")
    key = KEY.format(main_title=MAIN_TITLE[vendor])
    schema_editor.execute(f"CREATE INDEX {concurrently} {NAME} ON books_searchtext (({key}), book_id)")


def drop_index(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(f"DROP INDEX IF EXISTS {NAME}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0038_old_trigram_indexes")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(create_index, drop_index)],
            state_operations=[migrations.AddIndex("searchtext", models.Index(MatchKey(), models.F("book"), name=NAME))],
        )
    ]
