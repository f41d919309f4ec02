"""Folds the texts of the table of search texts, where triggers cannot (`books.migrations.0036_search_texts`)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction

from books.book.texts import fold_loosely
from books.book_values import BookValues
from library_site.db.sql import build_source, execute, fetch_all

# Matches texts that can differ when they are folded loosely.
NOT_PLAIN = re.compile("[^ -~]|`|  ")
# The texts of a book are parameters. The source is `VALUES`, or what returns the id of the book.
INSERT_SQL = """
    INSERT INTO books_searchtext (book_id, title, author, genre, strict, is_folded) {}
    ON CONFLICT (book_id) DO UPDATE SET title = excluded.title, author = excluded.author, genre = excluded.genre,
        strict = excluded.strict, is_folded = excluded.is_folded
"""
TYPES = {"book_id": "bigint", **dict.fromkeys(("title", "author", "genre", "strict"), "text"), "is_folded": "boolean"}
# It follows the statement `changed`, which returns the id of a book.
SEARCH_TEXT_CTE = f"search_text AS ({INSERT_SQL.format('SELECT id, %s, %s, %s, %s, true FROM changed')})"
# Of new books, before their ids are known.
MANY_TYPES = {"isbn": "text", **{name: type for name, type in TYPES.items() if name != "book_id"}}
BATCH = 1_000
LIST_SQL = "SELECT book_id, title, author, genre FROM books_searchtext WHERE NOT is_folded ORDER BY book_id LIMIT %s"
# A writer may have changed the texts meanwhile.
FOLD_SQL = """
    UPDATE books_searchtext SET title = %s, author = %s, genre = %s, strict = %s, is_folded = true
    WHERE NOT is_folded AND book_id = %s AND title = %s AND author = %s AND genre = %s
"""
# Of a book that is joined with its search text.
DIFFERS = """
    text.book_id IS NULL OR text.strict <> title_folded || '\n' || author_folded || '\n' || genre_folded
    AND (text.strict <> '' OR text.title <> title_folded OR text.author <> author_folded OR text.genre <> genre_folded)
"""
DIFFERING_BOOKS = f"books_book LEFT JOIN books_searchtext AS text ON text.book_id = id WHERE {DIFFERS}"
ORPHANS = "books_searchtext WHERE NOT EXISTS (SELECT 1 FROM books_book WHERE id = book_id)"
CORRECT_SQL = [
    f"DELETE FROM {ORPHANS}",
    INSERT_SQL.format(f"SELECT id, title_folded, author_folded, genre_folded, '', false FROM {DIFFERING_BOOKS}"),
]


def build_search_text(book: BookValues) -> list[str]:
    """Returns the texts of a book for INSERT_SQL; none if the trigger enters the same."""
    folded = [book.title_folded, book.author_folded, book.genre_folded]
    return fold_texts(folded) if NOT_PLAIN.search("|".join(folded)) else []


def insert_search_texts(books: Mapping[int, BookValues]) -> None:
    """Enters the texts of books that are written, by id, except those that the trigger has entered."""
    rows = [(pk, *texts, True) for pk, book in books.items() if (texts := build_search_text(book))]
    if rows:
        source, parameters = build_source(TYPES, rows)
        execute(INSERT_SQL.format(source), parameters)


def build_search_texts_cte(books: Sequence[BookValues]) -> tuple[str, list[Any]]:
    """Returns the statement `search_text` for new books, whose ids `changed` returns with their isbns; its parameters.

    It enters all texts: the trigger, which runs after it and then changes nothing, takes longer for each.
    """
    rows = [
        (book.isbn, *fold_texts([book.title_folded, book.author_folded, book.genre_folded]), True) for book in books
    ]
    source, parameters = build_source(MANY_TYPES, rows)
    texts = f"SELECT id, title, author, genre, strict, is_folded FROM changed JOIN ({source}) AS text USING (isbn)"
    return f"search_text AS ({INSERT_SQL.format(texts)})", parameters


def fold_texts(folded: Sequence[str]) -> list[str]:
    texts = [fold_loosely(text) for text in folded]
    return [*texts, "" if texts == [*folded] else "\n".join(folded)]


def fold_search_texts() -> bool:
    """Folds a batch of what triggers entered for older code, or for SQL of others. Returns whether there was any."""
    rows = fetch_all(LIST_SQL, [BATCH])
    if rows:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(FOLD_SQL, [[*fold_texts(texts), pk, *texts] for pk, *texts in rows])
    return bool(rows)


def count_differences(using: str = DEFAULT_DB_ALIAS) -> int:
    """Returns the number of books with other texts, and of texts without a book, normally 0. Reads all books."""
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT (SELECT count(*) FROM {DIFFERING_BOOKS}), (SELECT count(*) FROM {ORPHANS})")
        return sum(cursor.fetchone())
