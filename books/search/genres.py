"""Counts the books of each genre, in whatever capitals it is written."""

from typing import NamedTuple

from django.db.models import Count, Min

from books.models import Book


class GenreCount(NamedTuple):
    """A genre as one of its books writes it, and in how many ways books write it."""

    folded: str
    name: str
    spellings: int
    books: int


def count_genres(behind: str, limit: int) -> list[GenreCount]:
    """Returns the genres behind a folded one, in the order of folded texts. Reads all books."""
    rows = (
        Book.objects.filter(genre_folded__gt=behind)
        .values("genre_folded")
        .annotate(name=Min("genre"), spellings=Count("genre", distinct=True), books=Count("pk"))
        .order_by("genre_folded")
    )
    return [GenreCount(*row) for row in rows.values_list("genre_folded", "name", "spellings", "books")[:limit]]
