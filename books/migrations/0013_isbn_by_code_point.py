"""On PostgreSQL the collation of `isbn` becomes C: its unique index then finds prefixes, too, and replaces the index
that Django made for them.

The new index is built while others write. Then the column, which keeps its bytes, changes in a moment and takes the
index with it. What is left of an interrupted run is dropped by the next one.
"""

from typing import Any

from django.db import migrations

import books.fields
from library_site.db.online_ddl import execute_with_short_locks

PREFIX_INDEX = "books_book_isbn_abfed570_like"


def use_code_points(apps: Any, schema_editor: Any) -> None:
    change_collation(schema_editor, "C")


def use_database_collation(apps: Any, schema_editor: Any) -> None:
    change_collation(schema_editor, "default")
    if schema_editor.connection.vendor == "postgresql":
        build_index(schema_editor, "INDEX", PREFIX_INDEX, "isbn varchar_pattern_ops")


def change_collation(schema_editor: Any, collation: str) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    build_index(schema_editor, "UNIQUE INDEX", "books_book_isbn_new", f'isbn COLLATE "{collation}"')
    execute_with_short_locks(
        schema_editor.connection,
        [
            # PostgreSQL would build indexes of the column anew and check its constraint while the table is locked,
            # except an index that has the new collation already.
            f"DROP INDEX IF EXISTS {PREFIX_INDEX}",
            "ALTER TABLE books_book DROP CONSTRAINT books_book_isbn_key, DROP CONSTRAINT book_isbn_at_most_64",
            f'ALTER TABLE books_book ALTER COLUMN isbn TYPE varchar(64) COLLATE "{collation}"',
            "ALTER TABLE books_book ADD CONSTRAINT books_book_isbn_key UNIQUE USING INDEX books_book_isbn_new",
            "ALTER TABLE books_book ADD CONSTRAINT book_isbn_at_most_64 CHECK (length(isbn) <= 64) NOT VALID",
        ],
    )
    schema_editor.execute("ALTER TABLE books_book VALIDATE CONSTRAINT book_isbn_at_most_64")
    # The change of the column deleted its statistics.
    schema_editor.execute("ANALYZE books_book (isbn)")


def build_index(schema_editor: Any, kind: str, name: str, key: str) -> None:
    schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
    schema_editor.execute(f"CREATE {kind} CONCURRENTLY {name} ON books_book ({key})")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("books", "0012_short_pending_lists")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(use_code_points, use_database_collation)],
            state_operations=[
                migrations.AlterField(
                    "book",
                    "isbn",
                    books.fields.ISBNField(
                        "ISBN", error_messages={"unique": "Another book has this ISBN."}, max_length=64, unique=True
                    ),
                )
            ],
        )
    ]
