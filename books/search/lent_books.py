"""Which books are lent. Triggers on the book table maintain a table of them (`books.search.triggers`)."""

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Q

from books.models import LentBook

# By the value of `available`. Nearly all books are available, so no index helps to find those.
AVAILABILITY_CONDITIONS = {True: Q(available=True), False: Q(pk__in=LentBook.objects.values("book_id"))}
DIFFERENCES_SQL = """
    SELECT (SELECT count(*) FROM books_book WHERE NOT available
            AND NOT EXISTS (SELECT 1 FROM books_lentbook WHERE book_id = books_book.id)),
           (SELECT count(*) FROM books_lentbook
            WHERE NOT EXISTS (SELECT 1 FROM books_book WHERE id = book_id AND NOT available))
"""


def count_differences(using: str = DEFAULT_DB_ALIAS) -> int:
    """Returns the number of differences between the table and the books, normally 0. Reads all books."""
    with connections[using].cursor() as cursor:
        cursor.execute(DIFFERENCES_SQL)
        return sum(cursor.fetchone())
