"""Finds the books that a scan or a search means, the best matches first."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from operator import or_
from typing import NamedTuple

from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Left
from django.db.models.lookups import Exact, GreaterThanOrEqual, LessThan

from books.fields import fold
from books.lookup.scans import Kind, Scan
from books.models import FOLDED_COLUMNS, SORT_PREFIX_LENGTH, Book, sort_expression
from books.search import MAX_SEARCH_LENGTH, MAX_SEARCH_WORDS, contains_condition, isbn_prefix_condition
from library_site.db.integers import BIGINT_MAX

# Sorts behind every text that begins with what stands before it.
LAST_CHARACTER = "\U0010ffff"


class Section(NamedTuple):
    """Books that match equally well, and whether they are sorted by title, or the newest first.

    No book is in two sections of a search. Each can be read along an index.
    """

    condition: Q
    by_title: bool = False


def find_first(books: QuerySet[Book], sections: Sequence[Section], limit: int) -> list[Book]:
    """Returns the best matches. Takes a query a section at most."""
    return list(islice(chain.from_iterable(iter_sections(books, sections, limit)), limit))


def iter_sections(books: QuerySet[Book], sections: Sequence[Section], limit: int) -> Iterator[QuerySet[Book]]:
    for section in sections:
        order = (sort_expression("title").asc(), "pk") if section.by_title else ("-pk",)
        yield books.filter(section.condition).order_by(*order)[:limit]


def join_sections(sections: Sequence[Section]) -> Q:
    """The condition of the books of all sections."""
    return reduce(or_, (section.condition for section in sections))


def list_sections(scan: Scan) -> list[Section]:
    """Returns the sections of a scan, the best first; one of all books if nothing was asked for."""
    if scan.kind is Kind.NOTHING:
        return [Section(Q())]
    if scan.kind is Kind.ISBN:
        return [Section(Q(isbn13=scan.isbn13) | Q(isbn=scan.text))]
    if scan.kind is Kind.WORDS:
        return list_word_sections(scan.text)
    if scan.kind is Kind.ID:
        return list_id_sections(scan)
    # A book can have any text in place of an ISBN.
    return [Section(Q(isbn=scan.text))]


def list_id_sections(scan: Scan) -> list[Section]:
    """The book with this id; without a # before it the number can be a title, too, or the beginning of an ISBN."""
    has_id = Q(pk=scan.number) if scan.number <= BIGINT_MAX else Q(pk__in=[])
    others = [] if scan.is_marked else list_word_sections(scan.text)
    return [Section(has_id), *(section._replace(condition=section.condition & ~has_id) for section in others)]


def list_word_sections(text: str) -> list[Section]:
    """Equal titles before those that begin with the text, before the books that have every word somewhere."""
    title = fold(text[:MAX_SEARCH_LENGTH])
    has_title, begins, has_isbn = is_equal("title", title), begins_with("title", title), Q(isbn=text)
    return [
        Section(has_isbn),
        Section(has_title & ~has_isbn),
        Section(begins & ~has_title & ~has_isbn, by_title=True),
        Section(has_words(text) & ~begins & ~has_isbn),
    ]


def has_words(text: str) -> Q:
    """Every word somewhere in title, author or genre, or at the start of the ISBN."""
    condition = Q()
    for word in text[:MAX_SEARCH_LENGTH].split()[:MAX_SEARCH_WORDS]:
        condition &= contains_condition(word, *FOLDED_COLUMNS) | isbn_prefix_condition(word)
    return condition


def is_equal(member: str, folded_text: str) -> Q:
    """The first condition is for the index."""
    prefix = Exact(sort_expression(member), Value(folded_text[:SORT_PREFIX_LENGTH]))
    return Q(prefix, **{FOLDED_COLUMNS[member]: folded_text})


def begins_with(member: str, folded_text: str) -> Q:
    prefix = folded_text[:SORT_PREFIX_LENGTH]
    first = GreaterThanOrEqual(sort_expression(member), Value(prefix))
    last = LessThan(sort_expression(member), Value(f"{prefix}{LAST_CHARACTER}"))
    if len(folded_text) <= SORT_PREFIX_LENGTH:
        return Q(first, last)
    return Q(first, last, Exact(Left(FOLDED_COLUMNS[member], len(folded_text)), Value(folded_text)))
