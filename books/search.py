"""How a text is found in books: anywhere in a member, whatever its case, by an index where that is the quicker way."""

import re
from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import F, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Collate, Left, StrIndex
from django.db.models.lookups import Contains, Exact, GreaterThan

from books.fields import folded
from books.models import FOLDED, Book

# What pg_trgm finds three characters in: it sets two blanks before each word and one behind (PostgreSQL, pg_trgm).
HOLDS_TRIGRAM = re.compile(r"[^\W_]{3}|[^\W_]{2}[\W_]|[\W_][^\W_]")
# SQLite's trigrams are of any three characters. It is asked for every third, and for no more of a long text than this:
# a trigram more costs time and tells few books apart.
TRIGRAM = 3
ASKED = 64
# More matches than these are sooner met in the order of a list than gathered and sorted.
FEW = 5_000
FOUND = """
    SELECT count(*), json_group_array(rowid)
    FROM (SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH %s LIMIT %s)
"""


def containing(books: QuerySet[Book], text: str, *members: str) -> QuerySet[Book]:
    """The books that have this text, folded, somewhere in one of these members.

    `%`, `_` and `\\` stand for themselves, and an empty text is everywhere; NUL is the caller's to refuse.
    For one answer, not to be kept: on SQLite the index is asked at once, and where it has few books, it is for these.
    """
    return books.filter(contains(text, *members))


def contains(text: str, *members: str) -> Q:
    """The condition of `containing`, to be joined with others."""
    sought, columns = folded(text), [FOLDED[member] for member in members]
    if connection.vendor == "sqlite":
        # By bytes: its LIKE takes some characters for others (U+FFFF for U+FFFD).
        places = (GreaterThan(StrIndex(column, Value(sought)), 0) for column in columns)
        return Q(*places, _connector=Q.OR) & few_by_index(columns, sought)
    # An absent pattern without a trigram would take the whole index, at twice the cost of the table. The columns' own
    # collation under its other name compares alike, keeps their statistics, and is not the index's.
    return anywhere(columns, sought, collation=None if HOLDS_TRIGRAM.search(sought) else "POSIX")


def anywhere(columns: Sequence[str], sought: str, collation: str | None = None) -> Q:
    texts = [Collate(column, collation) if collation else F(column) for column in columns]
    return Q(*(Contains(text, sought) for text in texts), _connector=Q.OR)


def compiled(text: str, member: str) -> tuple[str, str]:
    """The condition of `containing` as SQL, and its one parameter. For PostgreSQL: SQLite's index is asked before."""
    sought = folded(text)
    pattern = Contains.param_pattern % connection.ops.prep_for_like_query(sought)
    return shape(member, bool(HOLDS_TRIGRAM.search(sought))), pattern


@cache
def shape(member: str, holds_trigram: bool) -> str:
    where = Book.objects.filter(contains("abc" if holds_trigram else "", member)).query.where
    sql, _ = where.as_sql(Book.objects.all().query.get_compiler(connection=connection), connection)
    return sql


def few_by_index(columns: Sequence[str], sought: str) -> Q:
    """Narrows to what SQLite's index finds where that is little, so that a list need not read every book."""
    if len(sought) < TRIGRAM:
        return Q()
    with connection.cursor() as cursor:
        cursor.execute(FOUND, [f"{{{' '.join(columns)}}}: ({trigrams(sought[:ASKED])})", FEW + 1])
        count, ids = cursor.fetchone()
    return Q() if count > FEW else Q(pk__in=RawSQL("SELECT value FROM json_each(%s)", [ids]))


def trigrams(text: str) -> str:
    """A query of FTS5 (SQLite, FTS5, 3) for as few of them as have every character of the text."""
    starts = [*range(0, len(text) - TRIGRAM, TRIGRAM), len(text) - TRIGRAM]
    quoted = (text[start : start + TRIGRAM].replace('"', '""') for start in starts)
    return " AND ".join(f'"{trigram}"' for trigram in quoted)


def isbn_begins(text: str) -> Q:
    """To the letter. SQLite's LIKE takes no index, and a range of it would gather all that match, many or few."""
    if connection.vendor != "sqlite":
        return Q(isbn__startswith=text)
    within = Q(isbn__gte=text, isbn__lt=f"{text}\U0010ffff")
    return Q(Exact(Left("isbn", len(text)), text)) if Book.objects.filter(within)[FEW:].exists() else within
