"""The books that are lent, in a table of their own, which triggers of the book table keep.

A partial index of them made each loan write all indexes of its book: PostgreSQL can leave them alone only if no index
has a column that changes, not even in its condition (PostgreSQL manual, 73.7 Heap-Only Tuples).
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

FUNCTION = """
    CREATE OR REPLACE FUNCTION books_keep_lent() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'DELETE' AND NOT NEW.available THEN
            INSERT INTO books_lentbook (book_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
        ELSE
            DELETE FROM books_lentbook WHERE book_id = OLD.id;
        END IF;
        RETURN NULL;
    END $$
"""
DELETE = "DELETE FROM books_lentbook WHERE book_id = OLD.id"
# By name: when it runs, for which rows, and what it does on SQLite.
EVENTS = {
    "book_lent_insert": (
        "AFTER INSERT",
        "NOT NEW.available",
        "INSERT OR IGNORE INTO books_lentbook (book_id) VALUES (NEW.id)",
    ),
    "book_lent_update": (
        "AFTER UPDATE OF available",
        "OLD.available <> NEW.available",
        f"{DELETE}; INSERT INTO books_lentbook (book_id) SELECT NEW.id WHERE NOT NEW.available",
    ),
    "book_lent_delete": ("AFTER DELETE", "NOT OLD.available", DELETE),
}
# By the kind of database and the name.
TRIGGERS = {
    "sqlite": {
        name: f"CREATE TRIGGER {name} {event} ON books_book WHEN {condition} BEGIN {action}; END"
        for name, (event, condition, action) in EVENTS.items()
    },
    "postgresql": {
        name: f"CREATE TRIGGER {name} {event} ON books_book FOR EACH ROW WHEN ({condition})"
        " EXECUTE FUNCTION books_keep_lent()"
        for name, (event, condition, _) in EVENTS.items()
    },
}


def create_triggers(apps: Any, schema_editor: Any) -> None:
    vendor = schema_editor.connection.vendor
    for statement in [*([FUNCTION] if vendor == "postgresql" else []), *TRIGGERS[vendor].values()]:
        schema_editor.execute(statement)


def drop_triggers(apps: Any, schema_editor: Any) -> None:
    vendor = schema_editor.connection.vendor
    for name in EVENTS:
        schema_editor.execute(f"DROP TRIGGER {name}{' ON books_book' if vendor == 'postgresql' else ''}")
    if vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION books_keep_lent")


class Migration(migrations.Migration):
    dependencies = [("books", "0027_import_corrections")]
    operations = [
        migrations.CreateModel(
            name="LentBook",
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
                )
            ],
            options={"default_permissions": ()},
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
