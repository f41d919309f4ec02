"""Which books are lent: a table has them, which triggers of the book table keep (`books.search.triggers`)."""

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Q

from books.models import LentBook

# By whether books are available. Nearly all are, so no index helps to find those.
AVAILABILITY_CONDITIONS = {True: Q(available=True), False: Q(pk__in=LentBook.objects.values("book_id"))}
DIFFERENCES_SQL = """
    SELECT (SELECT count(*) FROM books_book WHERE NOT available
            AND NOT EXISTS (SELECT 1 FROM books_lentbook WHERE book_id = books_book.id)),
           (SELECT count(*) FROM books_lentbook
            WHERE NOT EXISTS (SELECT 1 FROM books_book WHERE id = book_id AND NOT available))
"""


def count_differences(using: str = DEFAULT_DB_ALIAS) -> int:
    """Returns how many books are lent without being in the table, or the other way round: 0. Reads all books."""
    with connections[using].cursor() as cursor:
        cursor.execute(DIFFERENCES_SQL)
        return sum(cursor.fetchone())
