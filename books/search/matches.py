"""Finds the books for a scan or a search, best matches first."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Collate, Left
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan

from books.book.texts import fold, split_words
from books.models import FOLDED_COLUMNS, SORT_PREFIX_LENGTH, Book, sort_expression
from books.search.scans import Scan, ScanKind
from books.search.sections import Section, read_sections
from books.search.texts import (
    MAX_SEARCH_LENGTH,
    MAX_SEARCH_WORDS,
    find_words,
    isbn_prefix_condition,
)
from library_site.db.keyset import Start

# Sorts after every text with the prefix before it.
LAST_CHARACTER = "\U0010ffff"


class Search(NamedTuple):
    """The condition of all matching books, and its sections, best first. Each section is read along an index."""

    condition: Q
    sections: Sequence[Section]


def find_first(books: QuerySet[Book], scan: Scan, limit: int) -> list[Book]:
    return read_sections(books, build_search(scan).sections, limit, Start()).rows


def build_search(scan: Scan) -> Search:
    """An empty search matches every book."""
    if scan.kind is ScanKind.WORDS:
        return search_words(scan.text)
    if scan.kind is ScanKind.ID:
        return search_id(scan)
    condition = build_code_condition(scan)
    return Search(condition, [Section(condition)])


def build_code_condition(scan: Scan) -> Q:
    """A book can have any text as its isbn."""
    if scan.kind is ScanKind.NOTHING:
        return Q()
    return Q(isbn13=scan.isbn13) | Q(isbn=scan.text) if scan.kind is ScanKind.ISBN else Q(isbn=scan.text)


def find_by_code(scan: Scan, limit: int) -> list[Book]:
    """Returns the books with a code. Unlike a search, it ignores titles, authors and genres."""
    if scan.kind is ScanKind.NOTHING:
        return []
    condition = Q(pk=scan.number) if scan.kind is ScanKind.ID else Q(pk__in=[])
    if not scan.is_marked:
        condition |= build_code_condition(scan)
    return list(Book.objects.filter(condition).order_by("pk")[:limit])


def search_id(scan: Scan) -> Search:
    """Finds the book with this id. Without a leading # the number can also be a title or the beginning of an ISBN."""
    has_id = Q(pk=scan.number)
    if scan.is_marked:
        return Search(has_id, [Section(has_id)])
    condition, sections = search_words(scan.text)
    others = [section._replace(condition=section.condition & ~has_id) for section in sections]
    return Search(has_id | condition, [Section(has_id), *others])


def search_words(text: str) -> Search:
    """First equal titles, then titles that begin with the text, then books that contain every word."""
    title = fold(text[:MAX_SEARCH_LENGTH])
    has_title, begins = is_equal("title", title), begins_with("title", title)
    has_isbn, words = Q(isbn=text), has_words(text)
    sections = [
        Section(has_isbn),
        Section(has_title & ~has_isbn),
        Section(begins & ~has_title & ~has_isbn, "title"),
        Section(words & ~begins & ~has_isbn),
    ]
    return Search(has_isbn | words, sections)


def has_words(text: str) -> Q:
    """Every word occurs in title, author or genre, or at the start of the ISBN."""
    words = text[:MAX_SEARCH_LENGTH].split()[:MAX_SEARCH_WORDS]
    begins = {word: begins_isbn for word in words if (begins_isbn := find_isbns(word))}
    # Many books may have each single word, so the others are one condition.
    condition = find_words([part for word in words if word not in begins for part in split_words(word)])
    for word, begins_isbn in begins.items():
        condition &= find_words(split_words(word)) | begins_isbn
    return condition


def find_isbns(word: str) -> Q | None:
    """Returns the condition of the books whose isbn begins with the word, if there are any."""
    condition = isbn_prefix_condition(word)
    return condition if Book.objects.filter(condition).exists() else None


def is_equal(field: str, folded_text: str) -> Q:
    """The first condition uses the index."""
    prefix = Exact(sort_expression(field), Value(folded_text[:SORT_PREFIX_LENGTH]))
    return Q(prefix, Exact(compare_rows(FOLDED_COLUMNS[field]), Value(folded_text)))


def compare_rows(column: str) -> Collate:
    """Returns the column so that PostgreSQL does not use its trigram index, which is slowest for equal texts.

    For a plain column, SQLite would substitute the text in all conditions ("constant propagation" in its
    documentation), also in the one for the index, and then scan the table.
    """
    return Collate(column, "POSIX" if connection.vendor == "postgresql" else "BINARY")


def begins_with(field: str, folded_text: str) -> Q:
    prefix = folded_text[:SORT_PREFIX_LENGTH]
    first = GreaterThanOrEqual(sort_expression(field), Value(prefix))
    last = LessThan(sort_expression(field), Value(f"{prefix}{LAST_CHARACTER}"))
    if len(folded_text) <= SORT_PREFIX_LENGTH:
        return Q(first, last)
    return Q(first, last, Exact(Left(FOLDED_COLUMNS[field], len(folded_text)), Value(folded_text)))
