"""Conditions that find a text in the members of books, in any case and by an index if that is faster."""

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
from library_site.db.sql import thread_connection

# Matches if pg_trgm can take a trigram from a text. It puts two blanks before each word and one after it (PostgreSQL
# manual, pg_trgm).
TRIGRAM_PATTERN = re.compile(r"[^\W_]{3}|[^\W_]{2}[\W_]|[\W_][^\W_]")
# SQLite's trigrams are any three characters in a row. A query has every third of them, and only this many characters of
# a long text: more trigrams take time and exclude few books.
TRIGRAM_LENGTH = 3
MAX_INDEXED_TEXT = 64
# With more matches than these it is faster to read the books in the order of the list than to sort the matches.
MAX_INDEX_MATCHES = 5_000
INDEX_SQL = """
    SELECT count(*), json_group_array(rowid)
    FROM (SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH %s LIMIT %s)
"""
MAX_SEARCH_LENGTH = 500
MAX_SEARCH_WORDS = 20


def filter_containing(books: QuerySet[Book], text: str, *members: str) -> QuerySet[Book]:
    """Returns the books that have this text, folded, somewhere in one of these members.

    `%`, `_` and `\\` stand for themselves, and every book has an empty text. Callers must refuse NUL.
    Not to be stored for later requests: on SQLite the index is read now, and the result may name the books it has now.
    """
    return books.filter(contains_condition(text, *members))


def contains_sql(text: str, member: str) -> tuple[str, str]:
    """The condition of `filter_containing` as SQL, and its one parameter. On PostgreSQL only: SQLite reads an index."""
    folded_text = fold(text)
    pattern = Contains.param_pattern % thread_connection.database.ops.prep_for_like_query(folded_text)
    return compile_contains(member, bool(TRIGRAM_PATTERN.search(folded_text))), pattern


@cache
def compile_contains(member: str, has_trigram: bool) -> str:
    where = Book.objects.filter(contains_condition("abc" if has_trigram else "", member)).query.where
    sql, _ = where.as_sql(Book.objects.all().query.get_compiler(connection=connection), connection)
    return sql


def contains_condition(text: str, *members: str) -> Q:
    """The condition of `filter_containing`, to combine with others."""
    folded_text, columns = fold(text), [FOLDED_COLUMNS[member] for member in members]
    if connection.vendor == "sqlite":
        # StrIndex compares bytes. SQLite's LIKE takes some characters for others (U+FFFF for U+FFFD).
        matches = (GreaterThan(StrIndex(column, Value(folded_text)), 0) for column in columns)
        return Q(*matches, _connector=Q.OR) & narrow_by_index(columns, folded_text)
    # For a text without a trigram PostgreSQL would read the whole index, which costs twice as much as the table. The
    # collation POSIX compares like the columns' own, C, and keeps their statistics, but the index does not apply to it.
    collation = None if TRIGRAM_PATTERN.search(folded_text) else "POSIX"
    return contains_in_columns(columns, folded_text, collation)


def contains_in_columns(columns: Sequence[str], folded_text: str, collation: str | None) -> Q:
    texts = [Collate(column, collation) if collation else F(column) for column in columns]
    return Q(*(Contains(text, folded_text) for text in texts), _connector=Q.OR)


def narrow_to_words(words: Sequence[str], isbn_conditions: Sequence[Q]) -> Q:
    """On SQLite, the books that have all of the words, if these are few: each of the words may be in many.

    A word with which an ISBN begins, by the `isbn_prefix_condition` of each, narrows nothing: a book can have it there.
    """
    if connection.vendor != "sqlite" or len(words) < 2:
        return Q()
    pairs = zip(words, isbn_conditions, strict=True)
    texts = [fold(word) for word, begins_isbn in pairs if not Book.objects.filter(begins_isbn).exists()]
    return narrow_by_index(list(FOLDED_COLUMNS.values()), *texts) if len(texts) > 1 else Q()


def narrow_by_index(columns: Sequence[str], *folded_texts: str) -> Q:
    """The ids that SQLite's index finds, if these are few, so that a list need not read every book."""
    texts = [text[:MAX_INDEXED_TEXT] for text in folded_texts if len(text) >= TRIGRAM_LENGTH]
    if not texts:
        return Q()
    with connection.cursor() as cursor:
        query = " AND ".join(f"{{{' '.join(columns)}}}: ({trigram_query(text)})" for text in texts)
        cursor.execute(INDEX_SQL, [query, MAX_INDEX_MATCHES + 1])
        count, ids = cursor.fetchone()
    return Q() if count > MAX_INDEX_MATCHES else Q(pk__in=RawSQL("SELECT value FROM json_each(%s)", [ids]))


def trigram_query(text: str) -> str:
    """A query of FTS5 (SQLite, FTS5, 3) with as few trigrams as together contain every character of the text."""
    starts = [*range(0, len(text) - TRIGRAM_LENGTH, TRIGRAM_LENGTH), len(text) - TRIGRAM_LENGTH]
    trigrams = (text[start : start + TRIGRAM_LENGTH].replace('"', '""') for start in starts)
    return " AND ".join(f'"{trigram}"' for trigram in trigrams)


def isbn_prefix_condition(text: str) -> Q:
    """The books whose isbn begins with exactly this text."""
    if connection.vendor != "sqlite":
        return Q(isbn__startswith=text)
    # SQLite uses no index for LIKE. For a range it does, but then it sorts all matches, which is slow if they are many.
    prefix_range = Q(isbn__gte=text, isbn__lt=f"{text}\U0010ffff")
    has_many_matches = Book.objects.filter(prefix_range)[MAX_INDEX_MATCHES:].exists()
    return Q(Exact(Left("isbn", len(text)), text)) if has_many_matches else prefix_range
