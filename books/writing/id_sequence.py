"""Keeps the ids of deleted books out of the sequence of new ids.

Both databases remember the last id. But when Django recreates the table on SQLite, it resets the sequence to the
highest id in the table, and fixtures have ids of their own: of books, and of deleted books in their history.
"""

from typing import Any

from django.db import connections, transaction

from books.models import Change

TABLES = {"books_book", "books_change"}
LAST_ID_SQL = """
SELECT max(id) FROM (SELECT max(id) AS id FROM books_book UNION ALL SELECT max(book_id) FROM books_change) AS used
"""
# An unused PostgreSQL sequence is at 1, and `setval` must not treat that as a used id.
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
    """Receives `post_migrate`. The next book gets an id above all existing and deleted books."""
    connection = connections[using]
    if not set(connection.introspection.table_names()) >= TABLES:
        return
    with transaction.atomic(using), connection.cursor() as cursor:
        cursor.execute(LAST_ID_SQL)
        [(last_id,)] = cursor.fetchall()
    if last_id:
        reserve_id(last_id, using)


def reserve_id(pk: int, using: str) -> None:
    """The next book gets a higher id than this one."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for statement in RAISE_SQL[connection.vendor]:
            cursor.execute(statement, {"id": pk})


def reserve_changed_id(instance: Change, using: str, **_: Any) -> None:
    """Receives `post_save` of a change."""
    reserve_id(instance.book_id, using)
