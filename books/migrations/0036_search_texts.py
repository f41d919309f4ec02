"""The texts of books as people type them, in a table of their own, which triggers of the book table keep.

A trigger cannot fold as Python does. It enters the strictly folded texts, and marks those that can differ; the code
that writes a book enters them loosely folded. Version 1 finds what older code writes at once; it is folded later.

SQLite has a second index, of the books whose texts differ. The first one has the strictly folded texts, as before.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from library_site.db.online_ddl import execute_with_short_locks

FOLDED = ("title_folded", "author_folded", "genre_folded")
NEW = tuple(f"new.{column}" for column in FOLDED)
# Of texts that are the same loosely folded. `books.search.search_texts` has it in Python.
PLAIN = {
    "postgresql": "{} !~ '[^ -~]|`|  '",
    "sqlite": "({0} NOT GLOB '*[^ -~]*' AND {0} NOT GLOB '*`*' AND {0} NOT GLOB '*  *')",
}


def build_insert(vendor: str) -> str:
    """Changes nothing if the code that wrote the book has entered its texts."""
    plain = PLAIN[vendor].format("({} || '|' || {} || '|' || {})".format(*NEW))
    lines = " || '\n' || ".join(NEW)
    return f"""
        INSERT INTO books_searchtext (book_id, title, author, genre, strict, is_folded)
        VALUES (new.id, {", ".join(NEW)}, '', {plain})
        ON CONFLICT (book_id) DO UPDATE SET title = excluded.title, author = excluded.author,
            genre = excluded.genre, strict = '', is_folded = excluded.is_folded
        WHERE NOT books_searchtext.is_folded OR books_searchtext.strict <> {lines}
            AND (books_searchtext.strict <> '' OR books_searchtext.title <> excluded.title
                OR books_searchtext.author <> excluded.author OR books_searchtext.genre <> excluded.genre)
    """


DELETE = "DELETE FROM books_searchtext WHERE book_id = old.id"
FUNCTION = f"""
    CREATE OR REPLACE FUNCTION books_keep_search_text() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN {DELETE}; ELSE {build_insert("postgresql")}; END IF;
        RETURN NULL;
    END $$
"""
# By name: when it runs, and for which rows.
EVENTS = {
    "book_search_insert": ("AFTER INSERT", "true"),
    "book_search_update": (
        f"AFTER UPDATE OF {', '.join(FOLDED)}",
        " OR ".join(f"old.{column} <> new.{column}" for column in FOLDED),
    ),
    "book_search_delete": ("AFTER DELETE", "true"),
}
ADD = """
    INSERT INTO books_trigrams_loose (rowid, title, author, genre)
    SELECT new.book_id, new.title, new.author, new.genre WHERE new.strict <> ''
"""
# FTS5 has its commands inserted into a column named like the table (SQLite, FTS5, 6).
REMOVE = """
    INSERT INTO books_trigrams_loose (books_trigrams_loose, rowid, title, author, genre)
    SELECT 'delete', old.book_id, old.title, old.author, old.genre WHERE old.strict <> ''
"""
FTS_EVENTS = {
    "book_search_loose_insert": f"AFTER INSERT ON books_searchtext BEGIN {ADD}; END",
    "book_search_loose_update": f"AFTER UPDATE ON books_searchtext BEGIN {REMOVE}; {ADD}; END",
    "book_search_loose_delete": f"AFTER DELETE ON books_searchtext BEGIN {REMOVE}; END",
}
FTS_INDEX = [
    """
        CREATE VIRTUAL TABLE books_trigrams_loose
        USING fts5 (title, author, genre, content='', detail=column, tokenize='trigram case_sensitive 1')
    """,
    "INSERT INTO books_trigrams_loose (books_trigrams_loose, rank) VALUES ('automerge', 8)",
]
# By the kind of database and the name.
TRIGGERS = {
    "sqlite": {
        name: f"CREATE TRIGGER {name} {event} ON books_book WHEN {condition}"
        f" BEGIN {DELETE if name.endswith('delete') else build_insert('sqlite')}; END"
        for name, (event, condition) in EVENTS.items()
    }
    | {name: f"CREATE TRIGGER {name} {event}" for name, event in FTS_EVENTS.items()},
    "postgresql": {
        name: f"CREATE TRIGGER {name} {event} ON books_book FOR EACH ROW WHEN ({condition})"
        " EXECUTE FUNCTION books_keep_search_text()"
        for name, (event, condition) in EVENTS.items()
    },
}


def create_triggers(apps: Any, schema_editor: Any) -> None:
    database = schema_editor.connection
    if database.vendor == "postgresql":
        schema_editor.execute(FUNCTION)
        execute_with_short_locks(database, TRIGGERS["postgresql"].values())
        return
    for statement in (*FTS_INDEX, *TRIGGERS["sqlite"].values()):
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("books", "0035_no_mirrors")]
    operations = [
        migrations.CreateModel(
            "SearchText",
            fields=[
                (
                    "book",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="books.book",
                    ),
                ),
                ("title", models.TextField()),
                ("author", models.TextField()),
                ("genre", models.TextField()),
                ("strict", models.TextField()),
                ("is_folded", models.BooleanField()),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index("book", condition=models.Q(is_folded=False), name="search_text_to_fold"),
                ],
            },
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
