"""Pages of the history, read along its indexes, and its feed, in which the changes of an operation are one item."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, product
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from books.history import change_pages
from books.history.change_pages import Entry, Filters, read_book_page, read_recent_page
from books.history.feed import read_feed
from books.history.loans import LENT, NO_LOAN, TAKEN_BACK, find_loan
from books.models import Actor, Change, Operation
from library_site.db.keyset import Key, Page, Start
from tests.support.history import explain

# The rows of these tests describe no changes of books.
pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.unrecorded]

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EDIT, LEND = {"year": 1815}, {"available": False}
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
        end = page.previous_key if start.backward else page.next_key
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
        NOON,
        change_pages.ActorNames("mirror", "ada", "Bookshop", "Night import", "north"),
        5,
        {"year": 1},
        {"year": 2},
    )
    assert read_book_page(7, Start(), 10) == Page([entry], None)
    assert read_recent_page(Filters(), Start(), 10) == Page([entry], None)


def test_a_change_of_an_unknown_actor_is_shown() -> None:
    Change.objects.create(book_id=7, version=3, kind=2, at=NOON, actor_id=10**9)
    [entry] = read_book_page(7, Start(), 10).rows
    assert entry.actor == change_pages.UNKNOWN_ACTOR


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
    for unknown in (10**30, -(10**30), 3):
        assert read_book_page(unknown, Start(), 2) == Page([], None)


ACTORS = (
    {"channel": "v2", "user_name": "ada"},
    {"channel": "admin", "user_name": "ada"},
    {"channel": "v2", "app_name": "ada", "user_name": "bob"},
    {"channel": "v2", "api_key_name": "ada"},
    {"channel": "mirror", "source_name": "ada"},
    {"channel": "admin", "user_name": "bob"},
)
NAMES: tuple[dict[str, Any], ...] = (
    {},
    {"channel": "admin"},
    {"actor": "ada"},
    {"actor": "ada", "channel": "v2"},
    {"actor": "nobody"},
    *({name: "ada"} for name in NAME_FILTERS),
    {"user": "bob", "app": "ada"},
)
SPANS: tuple[dict[str, Any], ...] = ({}, {"since": NOON + timedelta(seconds=2), "until": NOON + timedelta(seconds=6)})


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


@pytest.mark.parametrize("max_queried", [0, 10])
def test_pages_have_each_change_that_matches_once_in_order(monkeypatch: pytest.MonkeyPatch, max_queried: int) -> None:
    monkeypatch.setattr(change_pages, "MAX_QUERIED_ACTORS", max_queried)
    actors = [add_actor(**names) for names in ACTORS]
    for number in range(24):
        kind = Change.Kind.DELETED if number % 3 else Change.Kind.CHANGED
        # Three have each time, of different actors.
        add_changes(actors[number * 5 % len(actors)], number // 3, kind=kind)
    every_entry = read_recent_page(Filters(), Start(), 100).rows
    assert [entry.id for entry in every_entry] == [*Change.objects.order_by("-at", "-id").values_list("id", flat=True)]
    oldest: Key = (datetime(2000, 1, 1), 0)  # noqa: DTZ001  # as keys are
    wrong = []
    for names, (span, kind) in product(NAMES, zip(SPANS, (None, Change.Kind.DELETED), strict=True)):
        filters = Filters(**names, **span, kind=kind)
        expected = [entry for entry in every_entry if matches(entry, filters)]
        read = partial(read_recent_page, filters, limit=5)
        pages, back = list(walk(read)), list(walk(read, Start(oldest, backward=True)))
        found = [[entry for page in way for entry in page.rows] for way in (pages, back[::-1])]
        sizes = {len(page.rows) for way in (pages, back) for page in way[:-1]}
        wrong += [] if found == [expected, expected] and sizes <= {5} else [filters]
    assert wrong == []


def test_the_changes_of_an_operation_are_read_by_id() -> None:
    """Those of two actors: ids have their order, whatever the clock said."""
    actors = [add_actor(user_name="ada"), add_actor("admin", user_name="ada")]
    for number in range(12):
        add_changes(actors[number % 2], 50 - number, kind=Change.Kind.DELETED if number % 5 else Change.Kind.CHANGED)
    Change.objects.exclude(at__in=[NOON + timedelta(seconds=time) for time in (50, 49)]).update(operation_id=5)
    for kind, expected in ((None, [*range(39, 49)]), (Change.Kind.CHANGED, [40, 45])):
        for start in (Start(), Start((NOON.replace(tzinfo=None), 0), backward=True)):
            filters = Filters(operation=5, user="ada", kind=kind)
            pages = list(walk(partial(read_recent_page, filters, limit=2), start))
            times = [time for page in (pages[::-1] if start.backward else pages) for time in list_times(page)]
            assert times == expected, (kind, start)


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
        with django_assert_num_queries(2 + (size if size <= change_pages.MAX_QUERIED_ACTORS else 1)):
            assert len(read_recent_page(filters, Start(), 100).rows) == size


def test_each_filter_is_read_along_its_index() -> None:
    filters_by_index = {
        "change_by_time": [Filters(), Filters(since=NOON, until=NOON + timedelta(days=1))],
        "change_by_kind": [Filters(kind=Change.Kind.CREATED), Filters(actor="ada", kind=Change.Kind.CREATED)],
        "change_by_actor": [Filters(actor="ada"), Filters(channel="v2", until=NOON)],
        "change_by_operation": [Filters(operation=5, user="ada")],
    }
    for name in ("ada", "ada", "bob"):
        add_changes(add_actor(user_name=name), *range(5))
    # Among fewer rows, the planner of PostgreSQL takes any index.
    add_changes(add_actor("mirror"), *range(-1000, 1000))
    start = Start((NOON.replace(tzinfo=None), 10**9))
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
    slow_steps = ("Seq Scan on books_change", "SCAN books_change\n", "Sort  (")
    wrong = []
    for index, filters in ((index, filters) for index, group in filters_by_index.items() for filters in group):
        with CaptureQueriesContext(connection) as queries:
            read_recent_page(filters, start, 2)
        # Also among these, it prefers to read the table and to sort.
        plans = [
            explain(query["sql"], "seqscan", "sort", "bitmapscan")
            for query in queries
            if "books_change" in query["sql"]
        ]
        if not any(index in plan for plan in plans) or any(step in plan for plan in plans for step in slow_steps):
            wrong.append((filters, plans))
    assert wrong == []


# The feed


def list_feed(filters: Filters, limit: int) -> list[Entry]:
    return [entry for page in walk(partial(read_feed, filters, limit=limit)) for entry in page.rows]


def add_operation(actor: Actor) -> int:
    return Operation.objects.create(kind="edit", actor=actor, created_at=NOON).pk


@pytest.fixture
def ada() -> Actor:
    """Ada changes single books while two operations of hers and one of Bob change others."""
    ada, bob, chance = add_actor("admin", user_name="ada"), add_actor("admin", user_name="bob"), Random(7)  # noqa: S311  # test data
    operations = [(add_operation(ada), ada, LEND), (add_operation(ada), ada, EDIT), (add_operation(bob), bob, EDIT)]
    rows: list[Change] = []
    for second in range(60):
        at = NOON + timedelta(seconds=second)
        operation, actor, after = (None, ada, LEND) if chance.random() < 0.3 else operations[second // 20]
        rows += [
            Change(
                book_id=len(rows) + number, version=1, kind=2, at=at, actor=actor, operation_id=operation, after=after
            )
            for number in range(1 if operation is None else chance.randint(1, 5))
        ]
    Change.objects.bulk_create(rows)
    return ada


@pytest.mark.usefixtures("ada")
def test_each_single_change_and_the_newest_of_each_operation_are_there_once() -> None:
    for filters in (
        Filters(),
        Filters(user="ada"),
        Filters(channel="admin"),
        Filters(kind=Change.Kind.CHANGED, loan=LENT),
        Filters(kind=Change.Kind.CHANGED, loan=NO_LOAN),
        Filters(since=NOON + timedelta(seconds=10), until=NOON + timedelta(seconds=30)),
        Filters(kind=Change.Kind.DELETED),
    ):
        operations: set[int | None] = set()
        expected = []
        for entry in read_recent_page(filters, Start(), 1_000).rows:
            if entry.operation_id not in operations:
                expected.append(entry)
            operations |= {entry.operation_id} - {None}
        for limit in (3, 100):
            assert list_feed(filters, limit) == expected, (filters, limit)


def test_the_changes_of_a_large_operation_are_not_read_one_by_one(ada: Actor) -> None:
    """One step leads over all changes of an operation with the same time."""
    operation = add_operation(ada)
    late = NOON + timedelta(days=1)
    Change.objects.bulk_create(
        Change(book_id=pk, version=2, kind=2, at=late, actor=ada, operation_id=operation, after=EDIT)
        for pk in range(3_000)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
    with CaptureQueriesContext(connection) as queries:
        first, second, *_ = read_feed(Filters(), Start(), 2).rows
    assert (first.operation_id, find_loan(second.after)) == (operation, "")
    [steps] = [query["sql"] for query in queries if "RECURSIVE" in query["sql"]]
    plan = explain(steps)
    assert "change_by_time" in plan
    assert not any(text in plan for text in ("Seq Scan on books_change", "SCAN books_change\n", "Sort  ("))


@pytest.mark.usefixtures("ada")
def test_few_loans_are_found_by_their_index() -> None:
    reader = add_actor("admin", user_name="reader")
    Change.objects.bulk_create(
        Change(book_id=pk, version=2, kind=2, at=NOON, actor=reader, after=EDIT) for pk in range(3_000)
    )
    if connection.vendor == "postgresql":
        connection.cursor().execute("ANALYZE books_change")
    for loan in (LENT, TAKEN_BACK):
        with CaptureQueriesContext(connection) as queries:
            read_feed(Filters(kind=Change.Kind.CHANGED, loan=loan), Start(), 2)
        [steps] = [query["sql"] for query in queries if "RECURSIVE" in query["sql"]]
        assert explain(steps).count("change_of_loan") == 3, loan


def test_the_newest_change_of_an_operation_tells_whether_it_is_a_loan() -> None:
    """Its newest change of a book that stays: a book that the operation adds later is no matter."""
    actor = add_actor("admin", user_name="ada")
    lent, edited = add_operation(actor), add_operation(actor)
    Change.objects.bulk_create(
        Change(
            book_id=pk,
            version=1,
            kind=kind,
            at=NOON + timedelta(seconds=operation),
            actor=actor,
            operation_id=operation,
            after=after,
        )
        for pk, (operation, kind, after) in enumerate(
            [(lent, 2, LEND), (lent, 1, None), (edited, 2, LEND), (edited, 2, EDIT)]
        )
    )
    filters = {loan: Filters(kind=Change.Kind.CHANGED, loan=loan) for loan in (LENT, NO_LOAN)}
    found = {loan: [entry.operation_id for entry in list_feed(filters[loan], 5)] for loan in filters}
    assert found == {LENT: [lent], NO_LOAN: [edited]}
