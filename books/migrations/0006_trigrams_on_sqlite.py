"""Partial matches by index on SQLite, whose FTS5 keeps the trigrams and leaves the texts in the book table.

Django remakes a table of SQLite for most changes of its columns and constraints, and the triggers are gone then: such a
migration ends with making them again.
"""

from typing import Any

from django.db import migrations

COLUMNS = "title_folded, author_folded, genre_folded"
NEW = "new.id, new.title_folded, new.author_folded, new.genre_folded"
OLD = "old.id, old.title_folded, old.author_folded, old.genre_folded"
ADD = f"INSERT INTO books_trigrams (rowid, {COLUMNS}) VALUES ({NEW})"
# FTS5 has its commands inserted into a column named like the table (SQLite, FTS5, 6).
REMOVE = f"INSERT INTO books_trigrams (books_trigrams, rowid, {COLUMNS}) VALUES ('delete', {OLD})"
CREATE = [
    # The columns are folded as the library folds: the tokenizer must not fold in its own way. Which columns of which
    # book have a trigram is enough to narrow a search, where is not kept.
    f"""
        CREATE VIRTUAL TABLE books_trigrams
        USING fts5
        ({COLUMNS}, content='books_book', content_rowid='id', detail=column, tokenize='trigram case_sensitive 1')
    """,
    # Merged half as often as by default: a write costs half as much, and a search a tenth more.
    "INSERT INTO books_trigrams (books_trigrams, rank) VALUES ('automerge', 8)",
    f"CREATE TRIGGER book_trigrams_insert AFTER INSERT ON books_book BEGIN {ADD}; END",
    f"CREATE TRIGGER book_trigrams_update AFTER UPDATE OF {COLUMNS} ON books_book BEGIN {REMOVE}; {ADD}; END",
    f"CREATE TRIGGER book_trigrams_delete AFTER DELETE ON books_book BEGIN {REMOVE}; END",
    "INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')",
]
DROP = [
    "DROP TRIGGER book_trigrams_insert",
    "DROP TRIGGER book_trigrams_update",
    "DROP TRIGGER book_trigrams_delete",
    "DROP TABLE books_trigrams",
]


def create(apps: Any, schema_editor: Any) -> None:
    run(schema_editor, CREATE)


def drop(apps: Any, schema_editor: Any) -> None:
    run(schema_editor, DROP)


def run(schema_editor: Any, statements: list[str]) -> None:
    if schema_editor.connection.vendor == "sqlite":
        for statement in statements:
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("books", "0005_kept_answers")]
    operations = [migrations.RunPython(create, drop)]
