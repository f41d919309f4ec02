"""Pairs of books that are probably duplicates, by the rule of `books.book.match_keys`. A librarian can mark a pair as
different books.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q

from books.book.isbn import normalize_isbn
from books.book.match_keys import (
    Work,
    build_match_key,
    build_work,
    compile_match_key,
    list_match_keys,
    list_words,
    split_title,
)
from books.book.texts import fold_loosely
from books.models import Book, DistinctBooks
from library_site.db.sql import fetch_all, fetch_by_texts, id_list

# So many pairs are counted, and compared again by each page with their number. More appear when these are resolved.
MAX_PAIRS = 500
# So many groups of books are compared to find them. Nearly all groups with the same match key are duplicates.
MAX_GROUPS = 20 * MAX_PAIRS
# A larger group has more pairs than are counted.
MAX_GROUP, GROUPS_AT_ONCE = 100, 100
GROUPS_SQL = """
    SELECT {ids} FROM (SELECT {pk} AS id, {key} AS key FROM {table}) AS book
    WHERE key IS NOT NULL GROUP BY key HAVING count(*) > 1 ORDER BY min(id) LIMIT %s
"""
IDS = {"postgresql": "string_agg(id::text, ',')", "sqlite": "group_concat(id)"}
FIND_SQL = "SELECT book_id, title, author FROM books_searchtext WHERE {} {{}} ORDER BY book_id"
COMPARED_COLUMNS = ("isbn13", "title_folded", "author_folded")


class Pair(NamedTuple):
    """The ids of two books, the older one first."""

    first: int
    second: int


class BookIdentity(NamedTuple):
    """What two books are compared by."""

    isbn13: str | None
    work: Work

    def is_same(self, other: "BookIdentity") -> bool:
        return self.work == other.work or (self.isbn13 is not None and self.isbn13 == other.isbn13)


def count_pairs() -> dict[str, Any]:
    """Returns `pairs`: the first MAX_PAIRS, and one more if there are more, each with the versions of its books.

    Reads all books: a million take seconds.
    """
    distinct = set(DistinctBooks.objects.values_list("first_id", "second_id"))
    pairs: set[Pair] = set()
    # Loosely folded texts: other accents and signs make no other work.
    match_key = compile_match_key(connection.vendor, "title", "author")
    for table, pk, key in (("books_book", "id", "isbn13"), ("books_searchtext", "book_id", match_key)):
        found = (pair for pair in iter_pairs(read_groups(table, pk, key)) if pair not in distinct)
        pairs |= set(islice(found, MAX_PAIRS + 1))
    first_pairs = sorted(pairs)[: MAX_PAIRS + 1]
    versions = read_versions({pk for pair in first_pairs for pk in pair})
    return {"pairs": [[*pair, *(versions.get(pk) for pk in pair)] for pair in first_pairs]}


def read_groups(table: str, pk: str, key: str) -> list[list[int]]:
    """Returns the ids of the books that share a key, the group with the oldest book first."""
    sql = GROUPS_SQL.format(ids=IDS[connection.vendor], table=table, pk=pk, key=key)
    return [sorted(map(int, ids.split(",")))[:MAX_GROUP] for (ids,) in fetch_all(sql, [MAX_GROUPS])]


def iter_pairs(groups: Sequence[Sequence[int]]) -> Iterator[Pair]:
    """Yields the pairs in each group that are duplicates."""
    for start in range(0, len(groups), GROUPS_AT_ONCE):
        some = groups[start : start + GROUPS_AT_ONCE]
        books = read_identities(chain.from_iterable(some))
        for first, second in chain.from_iterable(combinations(group, 2) for group in some):
            if is_duplicate(books, Pair(first, second)):
                yield Pair(first, second)


def is_duplicate(books: Mapping[int, BookIdentity], pair: Pair) -> bool:
    """Whether both books are there, and are still duplicates."""
    return books.keys() >= set(pair) and books[pair.first].is_same(books[pair.second])


def read_identities(pks: Iterable[int]) -> dict[int, BookIdentity]:
    rows = Book.objects.filter(pk__in=pks).values_list("pk", *COMPARED_COLUMNS)
    return {pk: BookIdentity(isbn13, build_work(title, author)) for pk, isbn13, title, author in rows}


def read_versions(pks: Collection[int]) -> dict[int, int]:
    """Returns the versions of the books that are there."""
    return dict(fetch_all(f"SELECT id, version FROM books_book WHERE id IN ({id_list(pks)})"))


def check_pairs(counted: Sequence[Sequence[int]]) -> list[Pair]:
    """Returns those that are still duplicates and are not marked as different, in the order of their ids.

    Only books with another version than when they were counted are compared.
    """
    pairs = {Pair(first, second): versions for first, second, *versions in counted}
    versions = read_versions({pk for pair in pairs for pk in pair})
    changed = {pair for pair, old in pairs.items() if old != [versions.get(pk) for pk in pair]}
    books = read_identities({pk for pair in changed for pk in pair})
    firsts = [pair.first for pair in pairs]
    marks = DistinctBooks.objects.filter(first_id__range=(min(firsts, default=0), max(firsts, default=0)))
    distinct = set(marks.values_list("first_id", "second_id"))
    return sorted(pair for pair in pairs if pair not in distinct and (pair not in changed or is_duplicate(books, pair)))


def find_same_isbn(isbn: str) -> Q:
    """Returns the condition of the books with the same ISBN, in any notation."""
    isbn13 = normalize_isbn(isbn)
    return Q(isbn13=isbn13) if isbn13 else Q(pk__in=[])


def find_same_works(works: Sequence[tuple[str, str]]) -> dict[tuple[str, str], dict[int, bool]]:
    """Returns the ids of the books of the same work, the oldest first, for each title and author that has any, and
    whether the subtitle is the same, too, or one of both has none.
    """
    folded = {(title, author): (fold_loosely(title), fold_loosely(author)) for title, author in works}
    keys = {texts: list_match_keys(*pair) for texts, pair in folded.items()}
    sql = FIND_SQL.format(compile_match_key(connection.vendor, "title", "author"))
    books: dict[Work, list[tuple[int, list[str]]]] = {}
    found_keys = set()
    for pk, title, author in fetch_by_texts(sql, set().union(*keys.values())):
        books.setdefault(build_work(title, author), []).append((pk, list_words(split_title(title)[1])))
        found_keys.add(build_match_key(title, author))
    found = {}
    # Most have no book with one of their keys.
    for texts in (texts for texts, own in keys.items() if not own.isdisjoint(found_keys)):
        title, author = folded[texts]
        words = list_words(split_title(title)[1])
        same_works = books.get(build_work(title, author), [])
        found[texts] = {pk: not (words and others) or words == others for pk, others in same_works}
    return {texts: pks for texts, pks in found.items() if pks}


def mark_distinct(pair: Pair) -> None:
    """Stores that these are different books."""
    row = DistinctBooks(first_id=pair.first, second_id=pair.second)
    DistinctBooks.objects.bulk_create([row], ignore_conflicts=True)


def unmark_distinct(pair: Pair) -> None:
    DistinctBooks.objects.filter(first_id=pair.first, second_id=pair.second).delete()
