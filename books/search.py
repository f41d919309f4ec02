"""How a text is found in books: anywhere in a member, whatever its case, by an index where that is the quicker way."""

import re
from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Collate, Left, StrIndex
from django.db.models.lookups import Contains, Exact, GreaterThan

from books.fields import fold
from books.models import FOLDED_COLUMNS, Book

# What pg_trgm finds three characters in: it sets two blanks before each word and one behind (PostgreSQL, pg_trgm).
TRIGRAM_PATTERN = re.compile(r"[^\W_]{3}|[^\W_]{2}[\W_]|[\W_][^\W_]")
# SQLite's trigrams are of any three characters. It is asked for every third, and for no more of a long text than this:
# a trigram more costs time and tells few books apart.
TRIGRAM_LENGTH = 3
MAX_INDEXED_TEXT = 64
# More matches than these are sooner met in the order of a list than gathered and sorted.
MAX_INDEX_MATCHES = 5_000
INDEX_SQL = """
    SELECT count(*), json_group_array(rowid)
    FROM (SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH %s LIMIT %s)
"""
MAX_SEARCH_LENGTH = 500
MAX_SEARCH_WORDS = 20


def filter_containing(books: QuerySet[Book], text: str, *members: str) -> QuerySet[Book]:
    """The books that have this text, folded, somewhere in one of these members.

    `%`, `_` and `\\` stand for themselves, and an empty text is everywhere; NUL is the caller's to refuse.
    For one answer, not to be kept: on SQLite the index is asked at once, and where it has few books, it is for these.
    """
    return books.filter(contains_condition(text, *members))


def contains_condition(text: str, *members: str) -> Q:
    """The condition of `containing`, to be joined with others."""
    sought, columns = fold(text), [FOLDED_COLUMNS[member] for member in members]
    if connection.vendor == "sqlite":
        # By bytes: its LIKE takes some characters for others (U+FFFF for U+FFFD).
        places = (GreaterThan(StrIndex(column, Value(sought)), 0) for column in columns)
        return Q(*places, _connector=Q.OR) & narrow_by_index(columns, sought)
    # An absent pattern without a trigram would take the whole index, at twice the cost of the table. The columns' own
    # collation under its other name compares alike, keeps their statistics, and is not the index's.
    return contains_in_columns(columns, sought, collation=None if TRIGRAM_PATTERN.search(sought) else "POSIX")


def contains_in_columns(columns: Sequence[str], sought: str, collation: str | None = None) -> Q:
    texts = [Collate(column, collation) if collation else F(column) for column in columns]
    return Q(*(Contains(text, sought) for text in texts), _connector=Q.OR)


def contains_sql(text: str, member: str) -> tuple[str, str]:
    """The condition of `containing` as SQL, and its one parameter. For PostgreSQL: SQLite's index is asked before."""
    sought = fold(text)
    pattern = Contains.param_pattern % connection.ops.prep_for_like_query(sought)
    return compile_contains(member, bool(TRIGRAM_PATTERN.search(sought))), pattern


@cache
def compile_contains(member: str, holds_trigram: bool) -> str:
    where = Book.objects.filter(contains_condition("abc" if holds_trigram else "", member)).query.where
    sql, _ = where.as_sql(Book.objects.all().query.get_compiler(connection=connection), connection)
    return sql


def narrow_by_index(columns: Sequence[str], sought: str) -> Q:
    """Narrows to what SQLite's index finds where that is little, so that a list need not read every book."""
    if len(sought) < TRIGRAM_LENGTH:
        return Q()
    with connection.cursor() as cursor:
        cursor.execute(
            INDEX_SQL, [f"{{{' '.join(columns)}}}: ({trigram_query(sought[:MAX_INDEXED_TEXT])})", MAX_INDEX_MATCHES + 1]
        )
        count, ids = cursor.fetchone()
    return Q() if count > MAX_INDEX_MATCHES else Q(pk__in=RawSQL("SELECT value FROM json_each(%s)", [ids]))


def trigram_query(text: str) -> str:
    """A query of FTS5 (SQLite, FTS5, 3) for as few of them as have every character of the text."""
    starts = [*range(0, len(text) - TRIGRAM_LENGTH, TRIGRAM_LENGTH), len(text) - TRIGRAM_LENGTH]
    quoted = (text[start : start + TRIGRAM_LENGTH].replace('"', '""') for start in starts)
    return " AND ".join(f'"{trigram}"' for trigram in quoted)


def isbn_prefix_condition(text: str) -> Q:
    """To the letter. SQLite's LIKE takes no index, and a range of it would gather all that match, many or few."""
    if connection.vendor != "sqlite":
        return Q(isbn__startswith=text)
    within = Q(isbn__gte=text, isbn__lt=f"{text}\U0010ffff")
    return (
        Q(Exact(Left("isbn", len(text)), text)) if Book.objects.filter(within)[MAX_INDEX_MATCHES:].exists() else within
    )
