"""Suggests existing genres and authors while the user types."""

from django.db import connection

from books.book.texts import fold
from books.models import FOLDED_COLUMNS, SORT_PREFIX_LENGTH
from books.search.matches import LAST_CHARACTER
from library_site.db.sql import fetch_all

MAX_SUGGESTIONS = 10
SUGGESTED_FIELDS = ("genre", "author")
# Reads one index entry for each suggestion, however many books have it.
SUGGESTIONS_SQL = """
    WITH RECURSIVE suggestions(prefix) AS (
        SELECT min({prefix}) FROM books_book WHERE {prefix} >= %s AND {prefix} < %s
        UNION ALL
        SELECT (SELECT min({prefix}) FROM books_book WHERE {prefix} > suggestions.prefix AND {prefix} < %s)
        FROM suggestions WHERE suggestions.prefix IS NOT NULL
    )
    SELECT (SELECT {field} FROM books_book WHERE {prefix} = suggestions.prefix ORDER BY id LIMIT 1)
    FROM suggestions WHERE suggestions.prefix IS NOT NULL LIMIT %s
"""


def suggest(field: str, text: str) -> list[str]:
    """Returns texts of the field that begin with this text, ignoring case. Each is spelled as in one of the books."""
    first = fold(text.strip())[:SORT_PREFIX_LENGTH]
    if not first or "\0" in first:
        return []
    sql = SUGGESTIONS_SQL.format(prefix=compile_prefix(field), field=field)
    last = f"{first}{LAST_CHARACTER}"
    return [text for (text,) in fetch_all(sql, [first, last, last, MAX_SUGGESTIONS])]


def compile_prefix(field: str) -> str:
    function = "SUBSTR({}, 1, {})" if connection.vendor == "sqlite" else "LEFT({}, {})"
    return function.format(FOLDED_COLUMNS[field], SORT_PREFIX_LENGTH)
