"""Pairs of books that are probably duplicates: with the same ISBN in any notation, or with the same title and author.

Comparing all books takes seconds in a large library. So `books.summaries` stores the pairs, and a page shows those that
are still duplicates.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from typing import Any, NamedTuple

from django.db import connection

from books.models import Book, DistinctBooks
from library_site.db.sql import fetch_all

SAME_ISBN, SAME_TITLE = "isbn", "title"
# The columns that both books of a pair share.
KEYS = {SAME_ISBN: ("isbn13",), SAME_TITLE: ("title_folded", "author_folded")}
# So many pairs of a kind are listed. More appear when these are resolved.
MAX_PAIRS = 1_000
GROUPS_SQL = (
    "SELECT {ids} FROM books_book WHERE {first_key} IS NOT NULL GROUP BY {keys} HAVING count(*) > 1"
    " ORDER BY min(id) LIMIT %s"
)
IDS = {"postgresql": "string_agg(id::text, ',')", "sqlite": "group_concat(id)"}


class Pair(NamedTuple):
    """The ids of two books, the older one first."""

    first: int
    second: int


def count_pairs(kind: str) -> dict[str, Any]:
    """Returns `pairs`: the first MAX_PAIRS, and one more if there are more. Reads all books: a million take seconds."""
    distinct = set(DistinctBooks.objects.values_list("first_id", "second_id"))
    groups = find_groups(kind, MAX_PAIRS + 1 + len(distinct))
    pairs = chain.from_iterable(combinations(sorted(group), 2) for group in groups)
    return {"pairs": list(map(list, islice((pair for pair in pairs if pair not in distinct), MAX_PAIRS + 1)))}


def find_groups(kind: str, limit: int) -> Iterator[list[int]]:
    """Yields the ids of the books that share a key, the group with the oldest book first."""
    keys = KEYS[kind]
    sql = GROUPS_SQL.format(ids=IDS[connection.vendor], first_key=keys[0], keys=", ".join(keys))
    for (ids,) in fetch_all(sql, [limit]):
        yield [int(pk) for pk in ids.split(",")]


def check_pairs(kind: str, pairs: Iterable[Sequence[int]]) -> list[Pair]:
    """Returns those that still share the key and are not marked as different, in the order of their ids."""
    found = [Pair(first, second) for first, second in pairs]
    firsts = {pair.first for pair in found}
    distinct = set(DistinctBooks.objects.filter(first_id__in=firsts).values_list("first_id", "second_id"))
    pks = firsts | {pair.second for pair in found}
    keys = {pk: key for pk, *key in Book.objects.filter(pk__in=pks).values_list("pk", *KEYS[kind])}
    return sorted(
        pair
        for pair in found
        if pair not in distinct and pair.first in keys and keys[pair.first] == keys.get(pair.second)
    )


def mark_distinct(pair: Pair) -> None:
    """Stores that these are different books."""
    row = DistinctBooks(first_id=pair.first, second_id=pair.second)
    DistinctBooks.objects.bulk_create([row], ignore_conflicts=True)
