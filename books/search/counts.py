"""Counts all books: lent books, and books by genre, decade and quality."""

from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, F, Min

from books.models import Book, LentBook
from books.search.quality import QUALITIES, build_quality_condition
from library_site.db.sql import fetch_all

# So many genres are counted; rarer ones do not appear in lists.
MAX_GENRES = 50
# So many genres are counted with their spellings, the first ones by their folded text.
MAX_COUNTED_GENRES = 500
# Makes all years positive: databases round negative quotients up, but a decade begins at the lower year.
YEAR_OFFSET = 10 * 2**28

# PostgreSQL counts distinct texts by sorting them, which takes six times as long as grouping them first.
COUNT_SQL = """
    SELECT genre_folded, min(name), count(*), CAST(sum(books) AS bigint) FROM (
        SELECT genre_folded, count(*) AS books,
               first_value(genre) OVER (PARTITION BY genre_folded ORDER BY count(*) DESC, genre) AS name
        FROM books_book WHERE genre_folded {comparison} %s
        GROUP BY genre_folded, genre
    ) AS spelling
    GROUP BY genre_folded ORDER BY genre_folded LIMIT %s
"""


def count_books(now: datetime) -> dict[str, Any]:
    """Returns `books` and `lent`; `genres`, most frequent first, and `decades` in order, each with their books; and
    `qualities`. Reads all books: a million take a second.
    """
    genres = (
        Book.objects.values("genre_folded").annotate(name=Min("genre"), books=Count("pk")).order_by("-books", "name")
    )
    decades = (
        Book.objects.annotate(decade=(F("year") + YEAR_OFFSET) / 10 - YEAR_OFFSET // 10)
        .values("decade")
        .annotate(books=Count("pk"))
    )
    return {
        "books": Book.objects.count(),
        "lent": LentBook.objects.count(),
        "genres": [[name, books] for name, books in genres.values_list("name", "books")[:MAX_GENRES] if name.strip()],
        "qualities": {
            name: Book.objects.filter(build_quality_condition(name, now.date())).count() for name in QUALITIES
        },
        "decades": [
            [decade * 10, books] for decade, books in decades.order_by("decade").values_list("decade", "books")
        ],
    }


class GenreCount(NamedTuple):
    """A genre as most of its books write it, and its number of spellings."""

    folded: str
    name: str
    spellings: int
    books: int


def count_genres(after: str, limit: int) -> list[GenreCount]:
    """Returns the genres after a folded one, sorted by folded text. Reads all books.

    For "" the first genre is the empty one, if any book has no genre.
    """
    sql = COUNT_SQL.format(comparison=">" if after else ">=")
    return [GenreCount(*row) for row in fetch_all(sql, (after, limit))]
