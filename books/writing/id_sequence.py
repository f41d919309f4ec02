"""Keeps the ids of deleted books out of the sequence of new ids.

Both databases remember the last id. But Django sets it back to the highest id in the table when it makes that anew on
SQLite, and `loaddata` can bring the history of books that another database had. The history knows the ids of deleted
books.
"""

from typing import Any

from django.db import connections, transaction

TABLES = {"books_book", "books_change"}
LAST_ID_SQL = """
SELECT max(id) FROM (SELECT max(id) AS id FROM books_book UNION ALL SELECT max(book_id) FROM books_change) AS used
"""
# A sequence of PostgreSQL that was never used is at 1, which `setval` must not mistake for a used id.
RAISE_SQL = {
    "postgresql": [
        """
        SELECT setval('books_book_id_seq', %(id)s) FROM books_book_id_seq
        WHERE CASE WHEN is_called THEN last_value ELSE last_value - 1 END < %(id)s
        """
    ],
    "sqlite": [
        "UPDATE sqlite_sequence SET seq = %(id)s WHERE name = 'books_book' AND seq < %(id)s",
        """
        INSERT INTO sqlite_sequence (name, seq) SELECT 'books_book', %(id)s
        WHERE NOT EXISTS (SELECT * FROM sqlite_sequence WHERE name = 'books_book')
        """,
    ],
}


def raise_id_sequence(using: str, **_: Any) -> None:
    """Receives `post_migrate`. The next book gets an id above those of all books, deleted ones too."""
    connection = connections[using]
    if not set(connection.introspection.table_names()) >= TABLES:
        return
    with transaction.atomic(using), connection.cursor() as cursor:
        cursor.execute(LAST_ID_SQL)
        [(last_id,)] = cursor.fetchall()
        for statement in RAISE_SQL[connection.vendor] if last_id else []:
            cursor.execute(statement, {"id": last_id})
