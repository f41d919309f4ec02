"""Conditions that find texts in books, as people type them or strictly, and with an index where that is faster."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from time import monotonic
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.db.models.lookups import Exact

from books.book.texts import fold, fold_loosely
from books.models import FOLDED_COLUMNS, Book, SearchText
from books.read_model import has_only_conditions
from library_site.db.sql import PreparedStatement, SQLCondition, thread_connection

TABLE = Book._meta.db_table
# Matches if pg_trgm can take a trigram from a text. It puts two blanks before each word and one after it (PostgreSQL
# manual, pg_trgm).
TRIGRAM_PATTERN = re.compile(r"[^\W_]{3}|[^\W_]{2}[\W_]|[\W_][^\W_]")
# SQLite's trigrams are any three characters in a row. A query has every third of them, and only this many characters of
# a long text: more trigrams take time and exclude few books.
TRIGRAM_LENGTH = 3
MAX_INDEXED_TEXT = 64
MAX_INDEX_MATCHES = 5_000
# Without trigrams SQLite reads the texts, until it has found so many: in a table of their own, and not book by book.
MAX_TEXT_MATCHES = 200
TEXT_MATCHES = "SELECT book_id AS rowid FROM books_searchtext WHERE {}"
STRICT_MATCHES = "SELECT rowid FROM books_trigrams WHERE books_trigrams MATCH %s"
LOOSE_MATCHES = f"""
    {STRICT_MATCHES} UNION ALL SELECT rowid FROM books_trigrams_loose WHERE books_trigrams_loose MATCH %s
"""
# All texts of a book, as in the index of PostgreSQL.
ALL_TEXTS = "(title || '\n' || author || '\n' || genre || '\n' || strict)"
COUNT_SQL = "SELECT count(*), json_group_array(rowid) FROM ({} LIMIT %s)"
# For books that PostgreSQL finds by the index. The array is read first, so the order of the list does not matter. Of
# the parameter of a subquery PostgreSQL expects nothing, so the plan is always the same, and may be kept. It never runs
# the subquery in COALESCE, but expects that of each row: else it reads a small table, while changes wait in the index.
BY_INDEX = """
    {{0}}.id = ANY(ARRAY(
        SELECT book_id FROM books_searchtext
        WHERE {} AND COALESCE({}, (SELECT true FROM books_book WHERE id = book_id))
    ))
"""
LIKE = f"{ALL_TEXTS} LIKE (SELECT %s::text)"
# PostgreSQL joins the tables by their ids, as it expects half of the books to match.
IN_TEXTS = "{0}.id IN (SELECT book_id FROM books_searchtext WHERE COALESCE({1}, false))"
# SQLite reads all texts for that, which takes longer than to look up those of a page's books, in the list's order.
SQLITE_ORDER = "(SELECT {1} FROM books_searchtext WHERE book_id = {0}.id)"
# PostgreSQL reads either all matches by the index, or the books in list order until enough match. Both take
# equally long where the share of the books that match, squared, times all books is about this (measured).
RARE_LIMIT = 20
SAMPLE_STRIPES, STRIPE_BOOKS = 20, 25
SAMPLE_STATEMENT = PreparedStatement(f"""
    SELECT last_id, title, author, genre
    FROM (SELECT max(book_id) AS last_id FROM books_searchtext) AS ids
    CROSS JOIN generate_series(0, {SAMPLE_STRIPES} - 1) AS stripe
    CROSS JOIN LATERAL (
        SELECT title, author, genre FROM books_searchtext
        WHERE book_id >= last_id / {SAMPLE_STRIPES} * stripe ORDER BY book_id LIMIT {STRIPE_BOOKS}
    ) AS sample
""")
# A small table may just be filled by an import.
SAMPLE_SECONDS, SMALL_SAMPLE_SECONDS = 60, 2
MAX_SEARCH_LENGTH = 500
MAX_SEARCH_WORDS = 20


def find_words(words: Sequence[str], field: str = "") -> Q:
    r"""Returns the condition of the books with all of these loosely folded texts in the field, or anywhere.

    `%`, `_` and `\` match themselves, and an empty text matches every book. Callers must reject NUL. Do not keep the
    condition for later requests: on SQLite it may contain the ids of the books that match now.
    """
    words = [word for word in words if word]
    if not words:
        return Q()
    matches = build_matches(words, field)
    if is_sqlite():
        # Both indexes have the columns of their tables.
        queries = [build_query(words, column) for column in (FOLDED_COLUMNS.get(field, ""), field)]
        if all(queries):
            narrow, ids = narrow_by_ids(LOOSE_MATCHES, queries, MAX_INDEX_MATCHES)
        else:
            narrow, ids = narrow_by_ids(TEXT_MATCHES.format(matches), words, MAX_TEXT_MATCHES)
        if narrow:
            return Q(SQLCondition(TABLE, narrow + SQLITE_ORDER.format("{0}", matches), [*ids, *words]))
    elif has_trigram(words) and is_rare(words, field):
        return Q(find_by_index(words, field))
    return Q(CommonTexts(TABLE, matches, words))


def find_strictly(text: str, field: str) -> Q:
    """Returns the condition of the books with this text in the field, ignoring case alone. See `find_words`."""
    text = fold(text)
    if not text:
        return Q()
    if is_sqlite():
        query = build_query([text], FOLDED_COLUMNS[field])
        narrow, parameters = narrow_by_ids(STRICT_MATCHES, [query], MAX_INDEX_MATCHES) if query else ("", ())
    elif has_trigram([text]) and is_rare([fold_loosely(text)], field):
        found = find_by_index([text])
        narrow, parameters = f"{found.sql} AND ", found.parameters
    else:
        narrow, parameters = "", ()
    return Q(SQLCondition(TABLE, f"{narrow}{contains(f'{{0}}.{FOLDED_COLUMNS[field]}')}", [*parameters, text]))


class CommonTexts(SQLCondition):
    """The condition of books with a condition of their texts that many of them match."""

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        in_order = connection.vendor == "sqlite" and compiler.query.is_sliced
        return (SQLITE_ORDER if in_order else IN_TEXTS).format(self.alias, self.sql), self.parameters


def count_books(books: QuerySet[Book]) -> int:
    """Counts the texts alone if nothing else is searched: to join the books takes twice as long."""
    match [getattr(condition, "lhs", None) for condition in books.query.where.children]:
        case [CommonTexts() as texts] if has_only_conditions(books) and not books.query.is_sliced:
            rows = SearchText.objects.using(books.db)
            return rows.filter(SQLCondition(rows.model._meta.db_table, texts.sql, texts.parameters)).count()
    return books.count()


def find_by_index(words: Sequence[str], field: str = "") -> SQLCondition:
    """Returns the condition of the books that the index of PostgreSQL finds for `find_words`."""
    escape = thread_connection.database.ops.prep_for_like_query
    patterns = [f"%{escape(word)}%" for word in words if has_trigram([word])]
    likes = " AND ".join([LIKE] * len(patterns))
    return SQLCondition(TABLE, BY_INDEX.format(likes, build_matches(words, field)), [*patterns, *words])


@cache
def is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def contains(column: str) -> str:
    return f"INSTR({column}, %s) > 0" if is_sqlite() else f"STRPOS({column}, %s) > 0"


def build_matches(words: Sequence[str], field: str) -> str:
    return " AND ".join([contains(field or ALL_TEXTS)] * len(words))


def has_trigram(words: Sequence[str]) -> bool:
    """Whether the index of PostgreSQL, which has trigrams, finds one of the words."""
    return any(map(TRIGRAM_PATTERN.search, words))


def is_rare(words: Sequence[str], field: str) -> bool:
    """Whether PostgreSQL finds the words faster by the index than by reading the books in list order.

    PostgreSQL would estimate this from the random sample of the last ANALYZE.
    """
    sample = get_sample()
    matches = sample.count_books(words, field)
    return not matches or matches * sample.count_books(words, "") / sample.size**2 * sample.books <= RARE_LIMIT


class Sample(NamedTuple):
    """The loosely folded texts of some books in each part of the table, by field; those of "" are of all fields."""

    read_at: float
    books: int
    size: int
    texts: Mapping[str, str]

    def is_old(self) -> bool:
        is_small = self.size < SAMPLE_STRIPES * STRIPE_BOOKS
        return monotonic() - self.read_at > (SMALL_SAMPLE_SECONDS if is_small else SAMPLE_SECONDS)

    def count_books(self, words: Sequence[str], field: str) -> int:
        """Returns the number of books with all of the words. With a single one, a book may count twice."""
        texts = self.texts[field]
        if len(words) == 1:
            return texts.count(words[0])
        return sum(all(word in text for word in words) for text in texts.split("\0"))


_sample: Sample | None = None


def get_sample() -> Sample:
    """Returns the sample of this process. It decides how books are found, never which."""
    global _sample
    if _sample is None or _sample.is_old():
        rows = SAMPLE_STATEMENT.fetch_all()
        texts = {field: "\0".join(row[number] for row in rows) for number, field in enumerate(FOLDED_COLUMNS, 1)}
        texts[""] = "\0".join("\n".join(row[1:]) for row in rows)
        _sample = Sample(monotonic(), rows[0][0] if rows else 0, len(rows), texts)
    return _sample


def build_query(words: Sequence[str], column: str = "") -> str:
    """Returns a query for FTS5; "" if there is none, because it needs three characters.

    Beside a longer word it omits those of three characters: many books have them, so they exclude few and take long.
    """
    shortest = min(max(map(len, words)), TRIGRAM_LENGTH + 1)
    queries = [trigram_query(word[:MAX_INDEXED_TEXT]) for word in words if len(word) >= max(shortest, TRIGRAM_LENGTH)]
    query = " AND ".join(queries)
    return f"{{{column}}}: ({query})" if query and column else query


def narrow_by_ids(statement: str, parameters: Sequence[str], most: int) -> tuple[str, Sequence[str]]:
    """Returns a condition with the ids that SQLite finds by the statement, and its parameter.

    It is empty if they are many: then it is faster to read the books in list order than to sort the matches.
    """
    with connection.cursor() as cursor:
        cursor.execute(COUNT_SQL.format(statement), [*parameters, most + 1])
        count, ids = cursor.fetchone()
    return ("", []) if count > most else ("{0}.id IN (SELECT value FROM json_each(%s)) AND ", [ids])


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
