"""Enters the texts of the books that were there before the triggers, and builds the index that searches them.

Meanwhile others write: what a trigger has entered stays. What is entered stays where the migration is interrupted, and
the next run goes on. `books.search.search_texts` then folds what can differ.
"""

from importlib import import_module
from typing import Any

from django.db import migrations, transaction

PLAIN = import_module("books.migrations.0036_search_texts").PLAIN
BATCH = 2_000
LAST_SQL = "SELECT max(id) FROM (SELECT id FROM books_book WHERE id > %s ORDER BY id LIMIT %s) AS batch"
# A book that is deleted meanwhile is not entered.
FILL_SQL = """
    INSERT INTO books_searchtext (book_id, title, author, genre, strict, is_folded)
    SELECT id, title_folded, author_folded, genre_folded, '', {plain} FROM (
        SELECT id, title_folded, author_folded, genre_folded FROM books_book WHERE id > %s AND id <= %s{lock}
    ) AS book
    WHERE true ON CONFLICT DO NOTHING
"""
# A search reads all of a pending list, so it is short (PostgreSQL manual, GIN, fast update).
GIN_INDEX = """
    CREATE INDEX CONCURRENTLY book_search_text ON books_searchtext
    USING gin ((title || '\n' || author || '\n' || genre || '\n' || strict) gin_trgm_ops)
    WITH (gin_pending_list_limit = 768)
"""


def fill(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection
    lock = " FOR KEY SHARE" if database.vendor == "postgresql" else ""
    plain = PLAIN[database.vendor].format("(title_folded || '|' || author_folded || '|' || genre_folded)")
    first = -(2**63)
    with database.cursor() as cursor:
        while True:
            cursor.execute(LAST_SQL, [first, BATCH])
            (last,) = cursor.fetchone()
            if last is None:
                return
            with transaction.atomic(using=database.alias):
                cursor.execute(FILL_SQL.format(plain=plain, lock=lock), [first, last])
            first = last


def create_index(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX CONCURRENTLY IF EXISTS book_search_text")
        schema_editor.execute(GIN_INDEX)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0036_search_texts")]
    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunPython(create_index, migrations.RunPython.noop),
    ]
