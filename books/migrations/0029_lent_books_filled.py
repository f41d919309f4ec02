"""Enters the books that were lent before the triggers, and drops the index that the table replaces.

A book that is taken back meanwhile must not be entered, so each is locked for a moment. What is entered stays so where
the migration is interrupted; the next run goes on.
"""

from typing import Any

from django.db import migrations, transaction

BATCH = 1_000
FILL_SQL = """
    WITH lent AS (
        SELECT id FROM books_book WHERE NOT available AND id > %s AND id <= %s ORDER BY id{lock}
    )
    INSERT INTO books_lentbook (book_id) SELECT id FROM lent WHERE true ON CONFLICT DO NOTHING
"""
LAST_SQL = """
    SELECT max(id) FROM (SELECT id FROM books_book WHERE NOT available AND id > %s ORDER BY id LIMIT %s) AS lent
"""


def fill(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection
    lock = " FOR NO KEY UPDATE" if database.vendor == "postgresql" else ""
    first = -(2**63)
    with database.cursor() as cursor:
        while True:
            cursor.execute(LAST_SQL, [first, BATCH])
            (last,) = cursor.fetchone()
            if last is None:
                return
            with transaction.atomic(using=database.alias):
                cursor.execute(FILL_SQL.format(lock=lock), [first, last])
            first = last


def drop_index(apps: Any, schema_editor: Any) -> None:
    concurrently = " CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP INDEX{concurrently} IF EXISTS book_lent")


def create_index(apps: Any, schema_editor: Any) -> None:
    concurrently = " CONCURRENTLY" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"CREATE INDEX{concurrently} book_lent ON books_book (id) WHERE NOT available")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0028_lent_books")]
    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop_index, create_index)],
            state_operations=[migrations.RemoveIndex("book", "book_lent")],
        ),
    ]
