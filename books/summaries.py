"""Numbers about all books and changes, for pages that must not count them.

If counting is fast, a number is counted when it is read. In a large library only the worker of operations counts it,
from time to time, and the result includes the time.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, transaction
from django.db.models import Count, F, Min
from django.db.models.functions import TruncHour

from books.history.change_pages import UNKNOWN_ACTOR, read_actor_names
from books.models import Book, Change, LentBook, Summary
from books.search.duplicates import MAX_PAIRS, Pair, check_pairs, count_pairs
from books.search.quality import QUALITIES, build_quality_condition
from library_site.admin.paginator import BoundedCount
from library_site.db.sql import fetch_all

# Never rename one: during an upgrade, a worker of the earlier release fails at a name that it does not know.
BOOKS, CHANGES, DUPLICATES = "books", "changes", "same_title"
COUNTERS: Mapping[str, Callable[[datetime], dict[str, Any]]] = {
    BOOKS: lambda now: count_books(now.astimezone(UTC)),
    CHANGES: lambda now: count_changes(now.astimezone(UTC)),
    DUPLICATES: lambda _: count_pairs(),
}
# The days whose changes are counted, and the people with most changes: a page names fewer.
DAYS, MAX_COUNTED_PEOPLE = 30, 20
# Stands for all other actors.
OTHERS = "0"
# So many genres are counted; rarer ones do not appear in lists.
MAX_GENRES = 50
# So many genres are counted with their spellings, the first ones by their folded text.
MAX_COUNTED_GENRES = 500
# Makes all years positive: databases round negative quotients up, but a decade begins at the lower year.
YEAR_OFFSET = 10 * 2**28

# PostgreSQL counts distinct texts by sorting them, which takes six times as long as grouping them first.
COUNT_SQL = """
    SELECT genre_folded, min(name), count(*), CAST(sum(books) AS bigint) FROM (
        SELECT genre_folded, count(*) AS books,
               first_value(genre) OVER (PARTITION BY genre_folded ORDER BY count(*) DESC, genre) AS name
        FROM books_book WHERE genre_folded {comparison} %s
        GROUP BY genre_folded, genre
    ) AS spelling
    GROUP BY genre_folded ORDER BY genre_folded LIMIT %s
"""
# A count that took fewer seconds is repeated by each page that shows it, and stored by a page once a minute.
LIVE_SECONDS = 0.03
MIN_AGE = timedelta(minutes=1)
# The worker spends at most a hundredth of its time on counting.
WORKER_SHARE = 100


def read_summary(name: str, now: datetime) -> Summary:
    """Returns the numbers of one of COUNTERS: the current ones, or those of its `counted_at`."""
    summary = Summary.objects.filter(name=name).first()
    if summary and summary.seconds > LIVE_SECONDS:
        return summary
    counted = count(name, now)
    if not summary or now - summary.counted_at >= MIN_AGE:
        # The page has its numbers, so a read-only database is not an error here.
        with suppress(DatabaseError), transaction.atomic():
            store(counted)
    return counted


class Duplicates(NamedTuple):
    """The pairs of possible duplicates, at most MAX_PAIRS; their number, which may be larger; and when the books were
    compared, None if that is now.
    """

    pairs: list[Pair]
    number: int
    counted_at: datetime | None


def read_duplicates(now: datetime) -> Duplicates:
    """Returns the counted pairs that are still duplicates. Every page that shows them or their number calls this."""
    summary = read_summary(DUPLICATES, now)
    pairs = check_pairs(summary.numbers["pairs"])
    number = BoundedCount(MAX_PAIRS) if len(pairs) > MAX_PAIRS else len(pairs)
    return Duplicates(pairs[:MAX_PAIRS], number, find_count_time(summary, now))


def find_count_time(summary: Summary, now: datetime) -> datetime | None:
    """Returns the time at which these numbers were counted; None if that is now."""
    return None if summary.counted_at == now else summary.counted_at


def refresh_summaries(now: datetime) -> None:
    """Refreshes the summaries that take too long to count on a page, before the first page shows them."""
    stored = {summary.name: summary for summary in Summary.objects.all()}
    for name in COUNTERS:
        summary = stored.get(name, Summary(seconds=0, counted_at=now - MIN_AGE))
        if now - summary.counted_at < max(MIN_AGE, timedelta(seconds=summary.seconds * WORKER_SHARE)):
            continue
        counted = count(name, now)
        if max(summary.seconds, counted.seconds) > LIVE_SECONDS:
            if name == BOOKS:
                # Only the page of genres shows them, and counts them itself where that is fast.
                counted.numbers["first_genres"] = count_genres("", MAX_COUNTED_GENRES)
            store(counted)


def count(name: str, now: datetime) -> Summary:
    start = time.perf_counter()
    numbers = COUNTERS[name](now)
    return Summary(name=name, numbers=numbers, counted_at=now, seconds=time.perf_counter() - start)


def store(summary: Summary) -> None:
    values = {"numbers": summary.numbers, "counted_at": summary.counted_at, "seconds": summary.seconds}
    Summary.objects.update_or_create(name=summary.name, defaults=values)


def count_changes(now: datetime) -> dict[str, Any]:
    """Returns the numbers of changes: `people` by hour in UTC and person, and `days` by actor, for the release before.

    From hours a page adds up the days of any time zone. A person is the first actor of that name; all but the
    MAX_COUNTED_PEOPLE with most changes are OTHERS. `now` is in UTC.
    """
    days = {(now - timedelta(days=age)).date().isoformat(): Counter[str]() for age in reversed(range(DAYS))}
    # The days of some time zones begin up to 14 hours earlier.
    first = now - timedelta(days=DAYS + 1)
    changes = Change.objects.filter(at__gte=first).values_list(TruncHour("at", tzinfo=UTC), "actor")
    rows = list(changes.annotate(changes=Count("pk")).order_by())
    people = merge_actors({actor_id for _hour, actor_id, _number in rows})
    totals = Counter[int]()
    for hour, actor_id, number in rows:
        # If a clock runs ahead, there are changes of tomorrow.
        if (date := hour.date().isoformat()) in days:
            days[date][str(actor_id)] += number
            totals[people[actor_id]] += number
    counted = sorted(totals, key=lambda person: (-totals[person], person))[:MAX_COUNTED_PEOPLE]
    hours = defaultdict[str, Counter[str]](Counter)
    for hour, actor_id, number in rows:
        person = people[actor_id]
        hours[hour.isoformat()][str(person) if person in counted else OTHERS] += number
    return {"people": hours, "days": days}


def merge_actors(pks: Collection[int]) -> dict[int, int]:
    """Returns for each actor the first one with the same name: a user has an actor for each channel, app and key."""
    names, firsts = read_actor_names(pks), dict[Any, int]()
    return {pk: firsts.setdefault(names.get(pk, UNKNOWN_ACTOR).first_name, pk) for pk in sorted(pks)}


def count_books(now: datetime) -> dict[str, Any]:
    """Returns `books` and `lent`; `genres`, most frequent first, and `decades` in order, each with their books; and
    `qualities`. Reads all books: a million take a second.
    """
    genres = (
        Book.objects.values("genre_folded").annotate(name=Min("genre"), books=Count("pk")).order_by("-books", "name")
    )
    decades = (
        Book.objects.annotate(decade=(F("year") + YEAR_OFFSET) / 10 - YEAR_OFFSET // 10)
        .values("decade")
        .annotate(books=Count("pk"))
    )
    return {
        "books": Book.objects.count(),
        "lent": LentBook.objects.count(),
        "genres": [[name, books] for name, books in genres.values_list("name", "books")[:MAX_GENRES] if name.strip()],
        "qualities": {
            name: Book.objects.filter(build_quality_condition(name, now.date())).count() for name in QUALITIES
        },
        "decades": [
            [decade * 10, books] for decade, books in decades.order_by("decade").values_list("decade", "books")
        ],
    }


class GenreCount(NamedTuple):
    """A genre as most of its books write it, and its number of spellings."""

    folded: str
    name: str
    spellings: int
    books: int


def count_genres(after: str, limit: int) -> list[GenreCount]:
    """Returns the genres after a folded one, sorted by folded text. Reads all books.

    For "" the first genre is the empty one, if any book has no genre.
    """
    sql = COUNT_SQL.format(comparison=">" if after else ">=")
    return [GenreCount(*row) for row in fetch_all(sql, (after, limit))]
