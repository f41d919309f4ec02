"""Conditions that find a text in the fields of books, ignoring case, and with an index where that is faster."""

import re
from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import BooleanField, F, Func, Q, QuerySet, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left, StrIndex
from django.db.models.lookups import Contains, Exact, GreaterThan

from books.fields import fold
from books.models import FOLDED_COLUMNS, Book
from library_site.db.sql import PreparedStatement, thread_connection

# Matches if pg_trgm can take a trigram from a text. It puts two blanks before each word and one after it (PostgreSQL
# manual, pg_trgm).
TRIGRAM_PATTERN = re.compile(r"[^\W_]{3}|[^\W_]{2}[\W_]|[\W_][^\W_]")
# SQLite's trigrams are any three characters in a row. A query has every third of them, and only this many characters of
# a long text: more trigrams take time and exclude few books.
TRIGRAM_LENGTH = 3
MAX_INDEXED_TEXT = 64
# With more matches, it is faster to read the books in list order than to sort the matches.
MAX_INDEX_MATCHES = 5_000
INDEX_SQL = """
    SELECT count(*), json_group_array(rowid)
    FROM (SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH %s LIMIT %s)
"""
# PostgreSQL reads either all matches by the index, or the books in list order until enough match. Both take
# equally long where the share of the books that match, squared, times all books is about this (measured).
RARE_LIMIT = 20
SAMPLE_STRIPES, STRIPE_BOOKS = 20, 25
SAMPLE_SQL = """
    SELECT count(*), max(last_id)
    FROM (SELECT max(id) AS last_id FROM books_book) AS ids
    CROSS JOIN generate_series(0, {stripes} - 1) AS stripe
    CROSS JOIN LATERAL (
        SELECT {columns} FROM books_book WHERE id >= last_id / {stripes} * stripe
        ORDER BY id LIMIT {stripe_books}
    ) AS sample
    WHERE {condition}
"""
MAX_SEARCH_LENGTH = 500
MAX_SEARCH_WORDS = 20


def filter_containing(books: QuerySet[Book], text: str, *fields: str) -> QuerySet[Book]:
    r"""Returns the books with this folded text in one of these fields.

    `%`, `_` and `\` match themselves, and an empty text matches every book. Callers must reject NUL. Do not keep the
    queryset for later requests: on SQLite it may contain the ids of the books that match now.
    """
    if connection.vendor == "postgresql" and len(fields) == 1:
        # Django takes longer to compile the condition than PostgreSQL to find the books.
        sql, parameter = contains_sql(text, fields[0])
        return books.filter(RawSQL(sql, (parameter,), BooleanField()))
    return books.filter(contains_condition(text, *fields))


def contains_sql(text: str, field: str) -> tuple[str, str]:
    """Returns the condition of `filter_containing` as SQL and its parameter. Only for PostgreSQL: SQLite reads an
    index.
    """
    folded_text, column = fold(text), FOLDED_COLUMNS[field]
    by_index = is_rare((column,), folded_text)
    return compile_contains(column, by_index), build_pattern(folded_text) if by_index else folded_text


@cache
def compile_contains(column: str, by_index: bool) -> str:
    condition = match_by_index([column], "") if by_index else match_in_order([column], "")
    where = Book.objects.filter(condition).query.where
    sql, _ = where.as_sql(Book.objects.all().query.get_compiler(connection=connection), connection)
    return sql


def build_pattern(folded_text: str) -> str:
    """Returns the LIKE pattern that Django's lookup builds from a text."""
    return Contains.param_pattern % thread_connection.database.ops.prep_for_like_query(folded_text)


def contains_condition(text: str, *fields: str) -> Q:
    """Returns the condition of `filter_containing`, to combine it with others."""
    folded_text, columns = fold(text), [FOLDED_COLUMNS[field] for field in fields]
    if connection.vendor == "sqlite":
        return match_in_order(columns, folded_text) & narrow_by_index(columns, folded_text)
    if is_rare(tuple(columns), folded_text):
        return match_by_index(columns, folded_text)
    return match_in_order(columns, folded_text)


def match_in_order(columns: Sequence[str], folded_text: str) -> Q:
    """For reading books in list order. It uses no index, and PostgreSQL expects a third of them to match.

    StrIndex compares bytes. SQLite's LIKE treats some characters as equal (U+FFFF and U+FFFD).
    """
    matches = (GreaterThan(StrIndex(column, Value(folded_text)), RawSQL("0", ())) for column in columns)
    return Q(*matches, _connector=Q.OR)


def match_by_index(columns: Sequence[str], folded_text: str) -> Q:
    """For books that PostgreSQL finds by the trigram index.

    Every book meets the last two conditions. PostgreSQL estimates that one in 200 does, so it never expects enough
    matches among the first books of a list.
    """
    matches = Q(*(Contains(F(column), folded_text) for column in columns), _connector=Q.OR)
    template = "MOD(%(expressions)s, 1) = 0"
    return matches & Q(*(Func(F(name), template=template, output_field=BooleanField()) for name in ("id", "version")))


def is_rare(columns: tuple[str, ...], folded_text: str) -> bool:
    """Whether PostgreSQL finds a text faster by the trigram index than by reading the books in list order.

    PostgreSQL would estimate this from the random sample of the last ANALYZE. This reads some books in each part of the
    table, always the same ones. For a text without a trigram, the whole index would be read.
    """
    if not TRIGRAM_PATTERN.search(folded_text):
        return False
    [(count, books)] = prepare_sample(columns).fetch_all([build_pattern(folded_text)] * len(columns))
    return not count or (count / SAMPLE_STRIPES / STRIPE_BOOKS) ** 2 * books <= RARE_LIMIT


@cache
def prepare_sample(columns: tuple[str, ...]) -> PreparedStatement:
    condition = " OR ".join(f"{column} LIKE %s" for column in columns)
    sql = SAMPLE_SQL.format(
        columns=", ".join(columns), condition=condition, stripes=SAMPLE_STRIPES, stripe_books=STRIPE_BOOKS
    )
    return PreparedStatement(sql)


def narrow_to_words(words: Sequence[str], isbn_conditions: Sequence[Q]) -> Q:
    """On SQLite, returns the books with all of the words if they are few, because many books may have each single word.

    If an ISBN begins with a word (`isbn_prefix_condition`), the word is skipped: a book can match there.
    """
    if connection.vendor != "sqlite" or len(words) < 2:
        return Q()
    pairs = zip(words, isbn_conditions, strict=True)
    texts = [fold(word) for word, begins_isbn in pairs if not Book.objects.filter(begins_isbn).exists()]
    return narrow_by_index(list(FOLDED_COLUMNS.values()), *texts) if len(texts) > 1 else Q()


def narrow_by_index(columns: Sequence[str], *folded_texts: str) -> Q:
    """Returns the ids that SQLite's index finds, if they are few, so that a list need not read every book."""
    texts = [text[:MAX_INDEXED_TEXT] for text in folded_texts if len(text) >= TRIGRAM_LENGTH]
    if not texts:
        return Q()
    with connection.cursor() as cursor:
        query = " AND ".join(f"{{{' '.join(columns)}}}: ({trigram_query(text)})" for text in texts)
        cursor.execute(INDEX_SQL, [query, MAX_INDEX_MATCHES + 1])
        count, ids = cursor.fetchone()
    return Q() if count > MAX_INDEX_MATCHES else Q(pk__in=RawSQL("SELECT value FROM json_each(%s)", [ids]))


def trigram_query(text: str) -> str:
    """Builds a query for FTS5 (SQLite, FTS5, 3) with as few trigrams as needed to cover every character of the text."""
    starts = [*range(0, len(text) - TRIGRAM_LENGTH, TRIGRAM_LENGTH), len(text) - TRIGRAM_LENGTH]
    trigrams = (text[start : start + TRIGRAM_LENGTH].replace('"', '""') for start in starts)
    return " AND ".join(f'"{trigram}"' for trigram in trigrams)


def isbn_prefix_condition(text: str) -> Q:
    """The books whose isbn begins with exactly this text."""
    if connection.vendor != "sqlite":
        return Q(isbn__startswith=text)
    # SQLite uses no index for LIKE. It uses one for a range, but then sorts all matches, which is slow for many.
    prefix_range = Q(isbn__gte=text, isbn__lt=f"{text}\U0010ffff")
    has_many_matches = Book.objects.filter(prefix_range)[MAX_INDEX_MATCHES:].exists()
    return Q(Exact(Left("isbn", len(text)), text)) if has_many_matches else prefix_range
