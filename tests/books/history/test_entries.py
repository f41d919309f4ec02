"""Pages of the history, read along its indexes."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from books.history import entries
from books.history.entries import Entry, Filters, read_book_page, read_recent_page
from books.models import Actor, Change
from library_site.db.keyset import Key, Page, Start
from tests.support.strategies import hypothesis_settings

# The rows of these tests describe no changes of books.
pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.unrecorded]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHANNELS = ("v2", "admin", "mirror")
KINDS = list(Change.Kind)[:4]
NAMES = ("ada", "Bookshop", "Night import", "north")
NAME_FILTERS = ("user", "app", "api_key", "source")
versions = count(1)


def add_actor(channel: str = "v2", **names: str) -> Actor:
    return Actor.objects.create(channel=channel, identity=f"{channel} {next(versions)}", **names)


def add_changes(actor: Actor, *times: int, kind: Change.Kind = Change.Kind.CHANGED, book_id: int = 1) -> None:
    """Adds a change so many seconds after noon, for each of the times."""
    Change.objects.bulk_create(
        Change(book_id=book_id, version=next(versions), kind=kind, at=NOON + timedelta(seconds=time), actor=actor)
        for time in times
    )


def list_times(page: Page[Entry]) -> list[int]:
    return [to_seconds(entry) for entry in page.rows]


def to_seconds(entry: Entry) -> int:
    return round((entry.at.replace(tzinfo=UTC) - NOON).total_seconds())


def walk(read: Callable[[Start], Page[Entry]], start: Start = Start()) -> Iterator[Page[Entry]]:  # noqa: B008  # a tuple
    """Yields a page and all that follow in its direction."""
    while True:
        page = read(start)
        yield page
        end = page.before if start.backward else page.behind
        if end is None:
            return
        start = start._replace(key=end)


def test_an_entry_has_all_that_is_known_of_a_change() -> None:
    actor = add_actor("mirror", user_name="ada", app_name="Bookshop", api_key_name="Night import", source_name="north")
    change = Change.objects.create(
        book_id=7, version=3, kind=2, at=NOON, actor=actor, operation_id=5, before={"year": 1}, after={"year": 2}
    )
    entry = Entry(
        change.pk,
        7,
        3,
        Change.Kind.CHANGED,
        NOON.replace(tzinfo=None),
        entries.ActorNames("mirror", "ada", "Bookshop", "Night import", "north"),
        5,
        {"year": 1},
        {"year": 2},
    )
    assert read_book_page(7, Start(), 10) == Page([entry], None)
    assert read_recent_page(Filters(), Start(), 10) == Page([entry], None)


def test_a_change_of_an_unknown_actor_is_shown() -> None:
    Change.objects.create(book_id=7, version=3, kind=2, at=NOON, actor_id=10**9)
    [entry] = read_book_page(7, Start(), 10).rows
    assert entry.actor == entries.UNKNOWN_ACTOR


def test_the_history_of_a_book_has_its_newest_version_first() -> None:
    actor = add_actor()
    # The clock went back: versions count.
    for time in (5, 3, 4, 1, 2):
        add_changes(actor, time)
    add_changes(actor, 9, book_id=2)
    pages = list(walk(lambda start: read_book_page(1, start, 2)))
    assert [list_times(page) for page in pages] == [[2, 1], [4, 3], [5]]
    pages_back = list(walk(lambda start: read_book_page(1, start, 2), Start((0,), backward=True)))
    assert [list_times(page) for page in pages_back] == [[3, 5], [1, 4], [2]]
    assert read_book_page(10**30, Start(), 2) == Page([], None)


def matches(entry: Entry, filters: Filters) -> bool:
    at = entry.at.replace(tzinfo=UTC)
    return (
        filters.actor in ("", *entry.actor[1:])
        and all(getattr(filters, name) in ("", getattr(entry.actor, name)) for name in NAME_FILTERS)
        and filters.channel in ("", entry.actor.channel)
        and filters.kind in (None, entry.kind)
        and (filters.since is None or filters.since <= at)
        and (filters.until is None or at < filters.until)
    )


actors = st.lists(
    st.tuples(st.sampled_from(CHANNELS), st.sampled_from(NAMES), st.integers(0, 3)), min_size=1, max_size=6
)
times = st.integers(0, 12)
changes = st.lists(st.tuples(times, st.integers(0, 5), st.sampled_from(KINDS)), max_size=30)
bounds = st.none() | times.map(lambda time: NOON + timedelta(seconds=time))
# Few changes match several names.
names = st.sampled_from((*[""] * 12, *NAMES))
filters_of_changes = st.builds(
    Filters,
    actor=names,
    **dict.fromkeys(NAME_FILTERS, names),
    operation=st.none(),
    channel=st.sampled_from(("", *CHANNELS)),
    kind=st.none() | st.sampled_from(KINDS),
    since=bounds,
    until=bounds,
)


@hypothesis_settings
@given(
    actor_values=actors,
    change_values=changes,
    filters=filters_of_changes,
    limit=st.integers(1, 4),
    max_queried=st.integers(0, 4),
)
def test_pages_have_each_change_that_matches_once_in_order(
    actor_values: list[Any],
    change_values: list[Any],
    filters: Filters,
    limit: int,
    max_queried: int,
) -> None:
    Change.objects.all().delete()
    Actor.objects.all().delete()
    columns = [name.name for name in Actor._meta.concrete_fields if name.name.endswith("_name")]
    stored = [add_actor(channel, **{columns[column]: name}) for channel, name, column in actor_values]
    for time, actor, kind in change_values:
        add_changes(stored[actor % len(stored)], time, kind=kind)
    every_entry = read_recent_page(Filters(), Start(), 100).rows
    assert [entry.id for entry in every_entry] == list(
        Change.objects.order_by("-at", "-id").values_list("id", flat=True)
    )
    expected = [entry for entry in every_entry if matches(entry, filters)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "MAX_QUERIED_ACTORS", max_queried)
        pages = list(walk(lambda start: read_recent_page(filters, start, limit)))
        oldest: Key = (datetime(2000, 1, 1), 0)  # noqa: DTZ001  # as keys are
        pages_back = list(walk(lambda start: read_recent_page(filters, start, limit), Start(oldest, backward=True)))
    assert [entry for page in pages for entry in page.rows] == expected
    assert [entry for page in reversed(pages_back) for entry in page.rows] == expected
    assert max(len(page.rows) for page in (*pages, *pages_back)) <= limit


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize(("kind", "expected"), [(None, [*range(11, 1, -1)]), (Change.Kind.DELETED, [9, 4])])
def test_the_changes_of_an_operation_are_read_by_id(
    kind: Change.Kind | None, expected: list[int], backward: bool
) -> None:
    add_changes(add_actor(user_name="ada"), *range(12))
    Change.objects.filter(at__gte=NOON + timedelta(seconds=2)).update(operation_id=5)
    Change.objects.filter(at__in=[NOON + timedelta(seconds=time) for time in (1, 4, 9)]).update(kind=3)
    start = Start((NOON.replace(tzinfo=None), 0) if backward else None, backward)
    filters = Filters(operation=5, user="ada", kind=kind)
    pages = list(walk(lambda start: read_recent_page(filters, start, 2), start))
    assert [time for page in (pages[::-1] if backward else pages) for time in list_times(page)] == expected


@pytest.mark.parametrize("size", [3, 60])
def test_a_page_takes_the_same_queries_however_many_changes_it_has(
    django_assert_num_queries: DjangoAssertNumQueries, size: int
) -> None:
    for number in range(size):
        add_changes(add_actor(user_name="ada"), number, kind=Change.Kind.CREATED)
    with django_assert_num_queries(2):
        assert len(read_book_page(1, Start(), 100).rows) == size
    with django_assert_num_queries(2):
        assert len(read_recent_page(Filters(), Start(), 100).rows) == size
    for filters in (Filters(actor="ada"), Filters(actor="ada", kind=Change.Kind.CREATED)):
        with django_assert_num_queries(2 + (size if size <= entries.MAX_QUERIED_ACTORS else 1)):
            assert len(read_recent_page(filters, Start(), 100).rows) == size


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (Filters(), "change_by_time"),
        (Filters(since=NOON, until=NOON + timedelta(days=1)), "change_by_time"),
        (Filters(kind=Change.Kind.CREATED), "change_by_kind"),
        (Filters(actor="ada"), "change_by_actor"),
        (Filters(channel="v2", until=NOON), "change_by_actor"),
        (Filters(actor="ada", kind=Change.Kind.CREATED), "change_by_kind"),
        (Filters(operation=5, user="ada"), "change_by_operation"),
    ],
)
def test_each_filter_is_read_along_its_index(filters: Filters, index: str) -> None:
    for name in ("ada", "ada", "bob"):
        add_changes(add_actor(user_name=name), *range(5))
    # Among fewer rows, the planner of PostgreSQL takes any index.
    add_changes(add_actor("mirror"), *range(-1000, 1000))
    start = Start((NOON.replace(tzinfo=None), 10**9))
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
        # Also among these, it prefers to read the table and to sort.
        connection.cursor().execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        connection.cursor().execute("SET LOCAL enable_bitmapscan = off")
    with CaptureQueriesContext(connection) as queries:
        read_recent_page(filters, start, 2)
    plans = [explain(query["sql"]) for query in queries if "books_change" in query["sql"]]
    assert any(index in plan for plan in plans)
    assert not any(
        text in plan for plan in plans for text in ("Seq Scan on books_change", "SCAN books_change\n", "Sort  (")
    )


def explain(statement: str) -> str:
    keyword = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
    with connection.cursor() as cursor:
        cursor.execute(f"{keyword} {statement}".replace("%", "%%"))
        return "".join(f"{row[-1]}\n" for row in cursor.fetchall())
